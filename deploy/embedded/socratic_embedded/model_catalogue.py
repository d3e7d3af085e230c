"""What configurations are checked against: the model providers of the runner."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from socratic_bench.domain.manifest import TutorModel
from socratic_runner.models import registry


class RegisteredModels:
    """The runner's providers, as planning sees them."""

    @property
    def providers(self) -> Collection[str]:
        return registry.PROVIDERS.keys()

    def check(self, model: TutorModel, base_folder: Path | None) -> None:
        registry.check_model(model, base_folder=base_folder)

    def fingerprint(self, model: TutorModel, base_folder: Path | None) -> str | None:
        return registry.fingerprint(model, base_folder=base_folder)
