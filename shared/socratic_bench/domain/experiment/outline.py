"""The outline of an experiment, for lists of experiments."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.experiment.state import ExperimentState


@dataclass(frozen=True, slots=True)
class ExperimentOutline:
    """An experiment without its scenarios, prompts and options.

    It takes a hundredth of the experiment's memory.
    """

    experiment_id: str
    manifest_id: str
    conditions_id: str
    """The name of the conditions: figures of experiments with the same one compare."""

    profile: str
    occasion: str | None
    name: str | None
    """The experiment's name for people."""

    notes: str | None
    model_ids: tuple[str, ...]
    created_at: datetime
    completed_at: datetime | None
    deadline_at: datetime
    state: ExperimentState
    planned_runs: int
    has_prices: bool
    """Whether a model of the plan has a price."""

    @classmethod
    def of(cls, experiment: Experiment) -> ExperimentOutline:
        manifest = experiment.manifest
        return cls(
            experiment_id=experiment.experiment_id,
            manifest_id=manifest.manifest_id,
            conditions_id=experiment.conditions_id,
            profile=manifest.profile,
            occasion=experiment.occasion,
            name=manifest.name,
            notes=manifest.notes,
            model_ids=tuple(model.id for model in manifest.models),
            created_at=experiment.created_at,
            completed_at=experiment.completed_at,
            deadline_at=experiment.deadline_at,
            state=experiment.state,
            planned_runs=manifest.planned_runs,
            has_prices=manifest.has_prices,
        )
