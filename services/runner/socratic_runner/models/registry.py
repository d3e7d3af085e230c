"""Which provider speaks to a model, and opening a client for it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Final, Protocol, cast

from socratic_bench.domain.manifest import TutorModel
from socratic_bench.errors import UnknownProvider
from socratic_bench.ports.models import ModelClient

PROVIDERS: Final = {
    "local": "socratic_runner.models.local",
    "reference": "socratic_runner.models.reference",
    "replay": "socratic_runner.models.replay",
}
"""The module that speaks to the models of a provider, by the first part of their ids."""


class Provider(Protocol):
    """What a provider's module offers."""

    def check_model(self, model: TutorModel, base_folder: Path | None) -> None:
        """Raise InvalidInput if `model` cannot be opened, without loading anything heavy."""
        ...

    def open_client(self, model: TutorModel, base_folder: Path | None) -> ModelClient:
        """A client for `model`. Raises InvalidInput where `check_model` does."""
        ...

    def fingerprint(self, model: TutorModel, base_folder: Path | None) -> str | None:
        """A hash of the files that decide about the responses; None where there are none."""
        ...


def check_model(model: TutorModel, *, base_folder: Path | None = None) -> None:
    """Whether `open_client` would take `model`, found out early and cheaply.

    Raises UnknownProvider, and InvalidInput for a model that its provider does not have, an
    option it does not know, a wrong value of an option, or something that is not installed.
    """
    _provider(model).check_model(model, base_folder)


def open_client(model: TutorModel, *, base_folder: Path | None = None) -> ModelClient:
    """A client for `model`.

    Paths in a model's id are taken from `base_folder`, the folder of the configuration. Raises
    what `check_model` raises.
    """
    return _provider(model).open_client(model, base_folder)


def fingerprint(model: TutorModel, *, base_folder: Path | None = None) -> str | None:
    """A hash of the files that decide about the responses of `model`; None where there are none.

    Raises what `check_model` raises.
    """
    return _provider(model).fingerprint(model, base_folder)


def _provider(model: TutorModel) -> Provider:
    module = PROVIDERS.get(model.provider)
    if module is None:
        raise UnknownProvider(
            f"model {model.id}: there is no provider {model.provider!r}; "
            f"there is {', '.join(sorted(PROVIDERS))}"
        )
    return cast("Provider", import_module(module))
