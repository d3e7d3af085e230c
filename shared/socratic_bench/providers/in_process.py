"""The providers with models in the runner's own process: reference tutors, a local model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.providers.options import Options, known_name, read_options, refuse_address
from socratic_bench.providers.spec import ProviderSpec

REFERENCE_TUTORS: Final = ("socratic", "lecturer", "hedger", "drifter", "faulty")
LOCAL_MODELS: Final = ("smollm2", "smollm2-fewshot")


class ReferenceOptions(Options):
    """The options of a reference tutor."""

    latency_ms: Annotated[int, Field(ge=0, le=600_000)] = 0
    """The simulated latency of a call, reported exactly."""


class LocalOptions(Options):
    """The options of a local model."""

    max_tokens: Annotated[int, Field(ge=1, le=2000)] | None = None
    """A lower limit than the benchmark's `max_tokens`, for a slow machine.

    A limit below 500 costs coverage: an answer cut off there has no score.
    """


def _check_reference(model: TutorModel, _: Path | None) -> None:
    known_name(model, REFERENCE_TUTORS)
    refuse_address(model)
    read_options(model, ReferenceOptions)


def _check_local(model: TutorModel, _: Path | None) -> None:
    known_name(model, LOCAL_MODELS)
    refuse_address(model)
    read_options(model, LocalOptions)


def _simulated_latency_ms(model: TutorModel) -> int:
    latency = model.options.get("latency_ms", 0)
    return latency if isinstance(latency, int) else 0


REFERENCE: Final = ProviderSpec(
    ReferenceOptions,
    _check_reference,
    free=True,
    reference=True,
    simulated_latency_ms=_simulated_latency_ms,
)
LOCAL: Final = ProviderSpec(LocalOptions, _check_local, free=True)
