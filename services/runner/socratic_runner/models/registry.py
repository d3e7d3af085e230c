"""Opens a client for a model, by the module of its provider.

A distribution offers such a module for a provider of its own under the entry point group
`socratic_runner.clients`, by the name of the provider.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Final, Protocol, cast, runtime_checkable

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import UnknownProvider
from socratic_bench.plugins import found
from socratic_bench.ports.models import ModelClient
from socratic_bench.providers.built_in import PRESETS
from socratic_bench.providers.endpoints import Endpoints
from socratic_bench.providers.registry import check_model, destination
from socratic_runner.models.access import Access

GROUP: Final = "socratic_runner.clients"

_OPENAI_COMPATIBLE = "socratic_runner.models.openai.chat_completions"

_BUILT_IN: Final = {
    "anthropic": "socratic_runner.models.anthropic",
    "bedrock": "socratic_runner.models.aws.bedrock",
    "local": "socratic_runner.models.local.smollm2",
    "reference": "socratic_runner.models.reference",
    "replay": "socratic_runner.models.replay",
    **dict.fromkeys(PRESETS, _OPENAI_COMPATIBLE),
}
"""The module for each provider; imported at the first use of a model."""

_NOTHING_LISTED: Final = Endpoints()


@runtime_checkable
class ClientModule(Protocol):
    """The functions of a client module, for checked models."""

    def check_access(self, model: TutorModel, access: Access) -> None:
        """Raise MissingExtra or MissingCredential if this process cannot call `model`.

        It uses no network: only the first call shows whether a key is right.
        """
        ...

    def open_client(self, model: TutorModel, access: Access) -> ModelClient:
        """Return a client for `model`. Raises InvalidInput where `check_access` does."""
        ...


def check_access(
    model: TutorModel,
    *,
    base_folder: Path | None = None,
    endpoints: Endpoints = _NOTHING_LISTED,
    key_variable: str | None = None,
) -> None:
    """Check that this process can call `model`, and may.

    `key_variable` is the environment variable that the configuration names for the key. Raises as
    `check_model`, and UnlistedEndpoint, MissingExtra and MissingCredential.
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
    """Return a client for `model`.

    Paths in a model's id are relative to `base_folder`, the folder of the configuration. Raises as
    `check_access`.
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


def _client(model: TutorModel) -> ClientModule:
    built_in = _BUILT_IN.get(model.provider)
    if built_in is not None:
        return cast("ClientModule", import_module(built_in))
    client = _installed(model.provider)
    if client is None:
        raise UnknownProvider(
            f"model {model.id}: no client is installed for provider {model.provider!r}; install a "
            f"distribution that has the entry point {model.provider!r} in the group {GROUP}"
        )
    return client


@cache
def _installed(provider: str) -> ClientModule | None:
    plugin = found(GROUP).get(provider)
    if plugin is None:
        return None
    client = plugin.load()
    if not isinstance(client, ClientModule):
        raise plugin.broken("needs the functions check_access and open_client")
    return client
