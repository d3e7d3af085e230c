"""The spec of the provider `echo`, for checks of configurations without its client."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.providers.options import Options, known_name, read_options, refuse_address
from socratic_bench.providers.spec import ProviderSpec

MODELS: Final = ("last-words",)


class EchoOptions(Options):
    """The options of an echo."""

    words: Annotated[int, Field(ge=1, le=50)] = 4
    """The number of the student's last words that come back."""


def _check(model: TutorModel, _: Path | None) -> None:
    known_name(model, MODELS)
    refuse_address(model)
    read_options(model, EchoOptions)


ECHO: Final = ProviderSpec(EchoOptions, _check, free=True)
