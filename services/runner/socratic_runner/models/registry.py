"""Opening a client for a model, by the module that speaks to its provider."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Final, Protocol, cast

from socratic_bench.domain.manifest import TutorModel
from socratic_bench.ports.models import ModelClient
from socratic_bench.providers.endpoints import Endpoints
from socratic_bench.providers.presets import PRESETS
from socratic_bench.providers.registry import check_model, destination
from socratic_runner.models.access import Access

_OPENAI_COMPATIBLE = "socratic_runner.models.openai_compatible"

CLIENTS: Final = {
    "anthropic": "socratic_runner.models.anthropic",
    "bedrock": "socratic_runner.models.bedrock",
    "local": "socratic_runner.models.local",
    "reference": "socratic_runner.models.reference",
    "replay": "socratic_runner.models.replay",
    **dict.fromkeys(PRESETS, _OPENAI_COMPATIBLE),
}
"""The module that speaks to the models of a provider. Imported when a model of it is used."""

_NOTHING_LISTED: Final = Endpoints()


class _Client(Protocol):
    """What such a module offers, for models that were checked."""

    def check_access(self, model: TutorModel, access: Access) -> None:
        """Raise MissingExtra or MissingCredential if this process could not speak to `model`.

        Without using the network: whether a key is right is not known before the first call.
        """
        ...

    def open_client(self, model: TutorModel, access: Access) -> ModelClient:
        """A client for `model`. Raises InvalidInput where `check_access` does."""
        ...


def check_access(
    model: TutorModel,
    *,
    base_folder: Path | None = None,
    endpoints: Endpoints = _NOTHING_LISTED,
    key_variable: str | None = None,
) -> None:
    """Whether this process has what it takes to speak to `model`, and may.

    `key_variable` is the environment variable that a person named for its key. Raises what
    `check_model` raises, UnlistedEndpoint, MissingExtra and MissingCredential.
    """
    access = _access(model, base_folder, endpoints, key_variable)
    _client(model).check_access(model, access)


def open_client(
    model: TutorModel,
    *,
    base_folder: Path | None = None,
    endpoints: Endpoints = _NOTHING_LISTED,
    key_variable: str | None = None,
) -> ModelClient:
    """A client for `model`.

    Paths in a model's id are taken from `base_folder`, the folder of the configuration. Raises
    what `check_access` raises.
    """
    access = _access(model, base_folder, endpoints, key_variable)
    return _client(model).open_client(model, access)


def _access(
    model: TutorModel, base_folder: Path | None, endpoints: Endpoints, key_variable: str | None
) -> Access:
    check_model(model, base_folder=base_folder)
    where = destination(model)
    key = None if where is None else endpoints.key_for(model, where, key_variable)
    return Access(base_folder, where, key)


def _client(model: TutorModel) -> _Client:
    return cast("_Client", import_module(CLIENTS[model.provider]))
