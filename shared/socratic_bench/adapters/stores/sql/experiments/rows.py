"""Experiments as rows, and rows as experiments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_core import from_json

from socratic_bench.adapters.stores.records import Records, Row, microseconds, record_of, time_at
from socratic_bench.domain.experiment.manifest import Experiment, Manifest
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.domain.money import nanodollars
from socratic_bench.ports.stores.experiments import RunningExperiment


def row_of_experiment(experiment: Experiment) -> Row:
    completed_at = experiment.completed_at
    return {
        "experiment_id": experiment.experiment_id,
        "manifest": record_of(experiment.manifest),
        "occasion": experiment.occasion,
        "profile": experiment.manifest.profile,
        "planned_runs": experiment.manifest.planned_runs,
        "created_at": microseconds(experiment.created_at),
        "completed_at": None if completed_at is None else microseconds(completed_at),
        "revision": 1,
        "planned_at": None,
        "state": experiment.state,
        "submitted": experiment.submitted,
    }


def row_of_spending(experiment: Experiment) -> Row:
    """Return the row of an experiment's budget, with no costs yet."""
    budget = experiment.manifest.budget
    return {
        "experiment_id": experiment.experiment_id,
        "budget": None if budget is None else nanodollars(budget),
        "committed": 0,
        "exhausted": False,
    }


def _experiment_of_row(row: Sequence[Any]) -> Experiment:
    """Read (experiment_id, manifest, occasion, created_at, completed_at, state, submitted)."""
    experiment_id, manifest, occasion, created_at, completed_at, state, submitted = row
    return Experiment(
        experiment_id=experiment_id,
        manifest=Manifest.model_validate_json(manifest, extra="ignore"),
        occasion=occasion,
        created_at=time_at(created_at),
        completed_at=None if completed_at is None else time_at(completed_at),
        state=ExperimentState(state),
        submitted=submitted,
    )


def running_of_row(row: Sequence[Any], model_ids: frozenset[str]) -> RunningExperiment:
    """Read (experiment_id, created_at, planned_at, exhausted, state)."""
    experiment_id, created_at, planned_at, exhausted, state = row
    return RunningExperiment(
        experiment_id=experiment_id,
        created_at=time_at(created_at),
        planned_at=None if planned_at is None else time_at(planned_at),
        model_ids=model_ids,
        exhausted=bool(exhausted),
        state=ExperimentState(state),
    )


def _models_of_row(row: Sequence[Any]) -> tuple[str, frozenset[str]]:
    """Read the experiment's id and its models' ids from (experiment_id, manifest).

    It also reads a manifest that this version understands only in part.
    """
    experiment_id, manifest = row
    return experiment_id, frozenset(model["id"] for model in from_json(manifest)["models"])


EXPERIMENTS = Records("experiments", 1, _experiment_of_row)

MODELS_OF_EXPERIMENTS = Records("experiments", 1, _models_of_row)
