"""What configurations are checked against: the model providers of the runner."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from socratic_bench.domain.manifest import TutorModel
from socratic_runner.models import registry


class RegisteredModels:
    """The runner's providers, as planning sees them.

    Where the runner is a process elsewhere (`runs_here` is false), what it needs to speak to a
    model, such as a key, is its own affair.
    """

    def __init__(self, *, runs_here: bool) -> None:
        self._runs_here = runs_here

    @property
    def providers(self) -> Collection[str]:
        return registry.PROVIDERS.keys()

    def check(self, model: TutorModel, base_folder: Path | None) -> None:
        registry.check_model(model, base_folder=base_folder)
        if self._runs_here:
            registry.check_access(model)

    def fingerprint(self, model: TutorModel, base_folder: Path | None) -> str | None:
        return registry.fingerprint(model, base_folder=base_folder)
