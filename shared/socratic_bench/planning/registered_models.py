"""The specs of the model providers, for the checks of configurations."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.providers import registry

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
