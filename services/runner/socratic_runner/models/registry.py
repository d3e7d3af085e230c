"""Which provider speaks to a model, and opening a client for it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Final, Protocol, cast

from socratic_bench.domain.manifest import TutorModel
from socratic_bench.errors import UnknownProvider
from socratic_bench.ports.models import ModelClient
from socratic_runner.models.presets import PRESETS

_OPENAI_COMPATIBLE = "socratic_runner.models.openai_compatible"

PROVIDERS: Final = {
    "anthropic": "socratic_runner.models.anthropic",
    "bedrock": "socratic_runner.models.bedrock",
    "local": "socratic_runner.models.local",
    "reference": "socratic_runner.models.reference",
    "replay": "socratic_runner.models.replay",
    **dict.fromkeys(PRESETS, _OPENAI_COMPATIBLE),
}
"""The module that speaks to the models of a provider, by the first part of their ids. Imported when
a model of it is used."""


class Provider(Protocol):
    """What a provider's module offers."""

    def check_model(self, model: TutorModel, base_folder: Path | None) -> None:
        """Raise InvalidInput if `model` cannot be opened, without loading anything heavy."""
        ...

    def check_access(self, model: TutorModel) -> None:
        """Raise MissingExtra or MissingCredential if this process could not speak to `model`.

        Without using the network: whether a key is right is not known before the first call.
        """
        ...

    def open_client(self, model: TutorModel, base_folder: Path | None) -> ModelClient:
        """A client for `model`. Raises InvalidInput where `check_model` or `check_access` does."""
        ...

    def fingerprint(self, model: TutorModel, base_folder: Path | None) -> str | None:
        """A hash of the files that decide about the responses; None where there are none."""
        ...


def check_model(model: TutorModel, *, base_folder: Path | None = None) -> None:
    """Whether what is said about `model` is right, found out early and cheaply.

    Raises UnknownProvider, and InvalidInput for a model that its provider does not have, an
    option it does not know, or a wrong value of an option.
    """
    _provider(model).check_model(model, base_folder)


def check_access(model: TutorModel) -> None:
    """Whether this process has what it takes to speak to `model`: dependencies, a key.

    Raises what `check_model` raises, MissingExtra and MissingCredential.
    """
    _provider(model).check_access(model)


def open_client(model: TutorModel, *, base_folder: Path | None = None) -> ModelClient:
    """A client for `model`.

    Paths in a model's id are taken from `base_folder`, the folder of the configuration. Raises
    what `check_model` and `check_access` raise.
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
