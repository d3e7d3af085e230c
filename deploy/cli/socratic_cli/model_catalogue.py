"""What configurations are checked against: the model providers there are."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from socratic_bench.domain.manifest import TutorModel
from socratic_bench.providers import registry
from socratic_bench.providers.endpoints import Endpoints
from socratic_cli.key_approval import key_of
from socratic_runner.models.registry import check_access


class RegisteredModels:
    """The providers, as planning sees them.

    Given the `endpoints` of this process, it is also checked whether that could speak to a model.
    Without them the runner is a process elsewhere, and what it needs is its own affair.
    """

    def __init__(self, endpoints: Endpoints | None = None) -> None:
        self._endpoints = endpoints

    @property
    def providers(self) -> Collection[str]:
        return registry.provider_names()

    def check(self, model: TutorModel, base_folder: Path | None, key_variable: str | None) -> None:
        registry.check_model(model, base_folder=base_folder, key_variable=key_variable)
        if self._endpoints is None:
            return
        # Whether a key may be sent to a foreign address is asked once everything else is right.
        where, key_name = registry.destination(model), key_of(model, key_variable)
        asked = [] if where is None or key_name is None else [(key_name, where.origin)]
        check_access(
            model,
            base_folder=base_folder,
            endpoints=self._endpoints.allowing(asked),
            key_variable=key_variable,
        )

    def fingerprint(self, model: TutorModel, base_folder: Path | None) -> str | None:
        return registry.fingerprint(model, base_folder=base_folder)
