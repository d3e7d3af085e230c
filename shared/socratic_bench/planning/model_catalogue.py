"""The model providers, as planning sees them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.providers import registry
from socratic_bench.providers.endpoints import SETTING
from socratic_bench.providers.registry import destination

if TYPE_CHECKING:
    from socratic_bench.planning.config_file.config import BenchmarkConfig


class ModelCatalogue(Protocol):
    """Knows the providers and checks their models, without calls or network.

    Relative paths in a model's options start from `base_folder`; None: the configuration may not
    name files.
    """

    @property
    def providers(self) -> Collection[str]:
        """The names of the providers, the part of a model id before the slash."""
        ...

    def check(self, model: TutorModel, base_folder: Path | None, key_variable: str | None) -> None:
        """Raise InvalidInput, with a sentence, if a run of this model could not begin.

        `key_variable` is the environment variable that the configuration names for its key.
        Raises UnknownProvider for an unregistered provider.
        """
        ...

    def fingerprint(self, model: TutorModel, base_folder: Path | None) -> str | None:
        """Return a hash of the files that decide this model's responses, such as a recording.

        Returns None without such files. The hash becomes the model's option `sha256`, so that the
        manifest's name depends on the files' contents. Raises InvalidInput for unreadable files.
        """
        ...


CheckAccess = Callable[[TutorModel, Path | None, str | None], None]
"""Raises InvalidInput if this process could not call a model; takes the folder of the
configuration and the environment variable of the model's key."""


class RegisteredModels:
    """The providers, as planning sees them."""

    def __init__(self, check_access: CheckAccess | None = None) -> None:
        """Without `check_access`, the runner is another process with access of its own."""
        self._check_access = check_access

    @property
    def providers(self) -> Collection[str]:
        return registry.provider_names()

    def check(self, model: TutorModel, base_folder: Path | None, key_variable: str | None) -> None:
        registry.check_model(model, base_folder=base_folder, key_variable=key_variable)
        if self._check_access is not None:
            self._check_access(model, base_folder, key_variable)

    def fingerprint(self, model: TutorModel, base_folder: Path | None) -> str | None:
        return registry.fingerprint(model, base_folder=base_folder)


def endpoints_to_list(config: BenchmarkConfig) -> list[str]:
    """Return a sentence for each address of the plan that is not a provider's own.

    A server on the runner's machine counts too, since a plan comes from elsewhere.
    """
    entries: dict[str, dict[str, Any]] = {}
    for model in config.manifest.called_models:
        where = destination(model)
        if where is None or (where.own and (where.signed or where.usual_key)):
            continue
        entry: dict[str, Any] = {"origin": where.origin}
        if where.signed:
            entry["aws"] = True
        elif variable := config.key_variables.get(model.id):
            entry["key_variable"] = variable
        elif model.endpoint:
            entry["key_variable"] = "…"
        entries.setdefault(json.dumps([entry, model.endpoint]), {model.endpoint or "NAME": entry})
    return [
        f"the runner calls {_origin(entry)} only if its operator lists it: "
        f"{SETTING}='{json.dumps(entry, ensure_ascii=False)}'"
        for entry in entries.values()
    ]


def _origin(entry: dict[str, Any]) -> str:
    return str(next(iter(entry.values()))["origin"])
