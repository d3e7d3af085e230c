"""The outline of an experiment, for lists of experiments."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from socratic_bench.domain.aggregates.cell import Cell
from socratic_bench.domain.experiment.manifest import Experiment, TutorModel
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.domain.run import Priority


def experiment_title(name: str | None, occasion: str | None) -> str | None:
    """Return a name with an occasion, as people call an experiment; None: it has neither."""
    return " · ".join(filter(None, (name, occasion))) or None


class ModelOutline(NamedTuple):
    """A model of an experiment without its system prompt."""

    id: str
    content: str
    """The rest of the model as JSON: a caller that changes its model changes no other one."""

    asked: tuple[str, str]
    """Models with the same names are asked in the same way on the same occasion."""

    @classmethod
    def of(cls, model: TutorModel, asked: Mapping[str, tuple[str, str]]) -> ModelOutline:
        content = model.model_dump_json(exclude={"system_prompt"})
        return cls(model.id, sys.intern(content), asked[model.id])

    def model(self) -> TutorModel:
        """The model; its system prompt is None whatever it is told."""
        return TutorModel.model_validate_json(self.content)


class ScenarioOutline(NamedTuple):
    """A scenario of an experiment without what the student says."""

    id: str
    dimension: str
    said: str
    """In scenarios with the same name the student says the same."""

    turns: int


@dataclass(frozen=True, slots=True)
class ExperimentOutline:
    """An experiment without what is said in it.

    It takes a small part of the experiment's memory.
    """

    experiment_id: str
    manifest_id: str
    conditions_id: str
    """The name of the conditions: figures of experiments with the same one compare."""

    asking_id: str
    """The name of the conditions without the profile: figures by one profile compare."""

    profile: str
    weightings: tuple[str, ...]
    """The profiles with other weights that its configurations named."""

    occasion: str | None
    name: str | None
    """The experiment's name for people."""

    notes: str | None
    pinned_at: datetime | None
    """The time at which a person pinned it for the default leaderboard; None: it is not pinned."""

    student: str | None
    """The model that plays the student, in words; None: the scenarios have all messages."""

    models: tuple[ModelOutline, ...]
    scenarios: tuple[ScenarioOutline, ...]
    repeats: int
    created_at: datetime
    completed_at: datetime | None
    deadline_at: datetime
    priority: Priority
    state: ExperimentState
    planned_runs: int
    most_runs: int
    """The runs of all its repeats; more than planned where `stop_when` ended it."""

    has_prices: bool
    """Whether a model of the plan has a price."""

    twins: Mapping[str, str]
    """Scenarios in which the student says the same as in an earlier one of their dimension, with
    that one: both are one cluster, since their answers tell no more than repeats would."""

    @property
    def title(self) -> str | None:
        """Its name and its occasion, as people call it; None: it has neither."""
        return experiment_title(self.name, self.occasion)

    @property
    def model_ids(self) -> tuple[str, ...]:
        return tuple(model.id for model in self.models)

    def cluster_of(self, cell: Cell) -> str:
        """Return the scenario that a cell's figures count for."""
        return self.twins.get(cell.key.scenario_id, cell.key.scenario_id)

    @classmethod
    def of(cls, experiment: Experiment) -> ExperimentOutline:
        manifest, asked = experiment.manifest, experiment.asked_of_models
        said = experiment.said_in_scenarios
        return cls(
            experiment_id=experiment.experiment_id,
            manifest_id=manifest.manifest_id,
            conditions_id=experiment.conditions_id,
            asking_id=experiment.asking_id,
            profile=manifest.profile,
            weightings=tuple(manifest.weightings),
            occasion=experiment.occasion,
            name=manifest.name,
            notes=manifest.notes,
            pinned_at=manifest.pinned_at,
            student=None if manifest.student is None else manifest.student.told,
            models=tuple(ModelOutline.of(model, asked) for model in manifest.models),
            scenarios=tuple(
                ScenarioOutline(
                    sys.intern(each.id), sys.intern(each.dimension), said[each.id], each.turns
                )
                for each in manifest.scenarios
            ),
            repeats=manifest.due_repeats,
            created_at=experiment.created_at,
            completed_at=experiment.completed_at,
            deadline_at=experiment.deadline_at,
            priority=experiment.manifest.priority,
            state=experiment.state,
            planned_runs=manifest.planned_runs,
            most_runs=manifest.runs_of_a_round * manifest.repeats,
            has_prices=manifest.has_prices,
            twins=manifest.twins,
        )
