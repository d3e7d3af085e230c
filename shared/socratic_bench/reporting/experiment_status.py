"""How far an experiment is, and whether it is late."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from socratic_bench.domain.manifest import Experiment
from socratic_bench.errors import UnknownExperiment
from socratic_bench.ports.store import Progress, Store
from socratic_bench.reporting.comparison import ExperimentSummary

NAMED = 5
"""Experiments that are named where a shortened id could mean any of them."""


class State(StrEnum):
    """How an experiment stands."""

    COMPLETE = "complete"
    AT_WORK = "at_work"
    OVERDUE = "overdue"
    """Its deadline has passed and not every run is done."""


class ExperimentStatus(ExperimentSummary):
    """An experiment at one moment."""

    failed: int
    """Runs that gave no response after all tries; they are among those done."""

    left: int
    """Runs that are not done."""

    deadline_at: datetime
    state: State

    @classmethod
    def at(cls, now: datetime, experiment: Experiment, progress: Progress) -> ExperimentStatus:
        """The status of an experiment that is this far, `now`."""
        left = max(0, progress.planned - progress.done)
        state = State.OVERDUE if now >= experiment.deadline_at else State.AT_WORK
        return cls(
            **ExperimentSummary.of(experiment, done=progress.done).model_dump(),
            failed=progress.failed,
            left=left,
            deadline_at=experiment.deadline_at,
            state=state if left else State.COMPLETE,
        )


class ModelProgress(BaseModel):
    """How far one model of an experiment is, in runs."""

    model_config = ConfigDict(frozen=True)

    model_id: str
    model_name: str
    planned: int
    done: int
    failed: int


async def model_progress(store: Store, experiment: Experiment) -> tuple[ModelProgress, ...]:
    """How far each model is, in the order of the manifest: a fold of cells."""
    manifest = experiment.manifest
    done = dict.fromkeys(manifest.models_by_id, 0)
    failed = dict.fromkeys(manifest.models_by_id, 0)
    for cell in await store.cells([experiment.experiment_id]):
        if cell.key.profile == manifest.profile:
            done[cell.key.model_id] += cell.runs_ended
            failed[cell.key.model_id] += cell.statuses.get("error", 0)
    planned = len(manifest.scenarios) * manifest.repeats
    return tuple(
        ModelProgress(
            model_id=model.id,
            model_name=model.display_name,
            planned=planned,
            done=done[model.id],
            failed=failed[model.id],
        )
        for model in manifest.models
    )


async def find_experiment(store: Store, experiment_id: str) -> Experiment:
    """The experiment of this id, or of the only id that begins with it.

    Raises UnknownExperiment where there is none, or where it could be several.
    """
    if found := await store.experiment(experiment_id):
        return found
    meant = [
        each
        for each in await store.experiments()
        if experiment_id and each.experiment_id.startswith(experiment_id)
    ]
    if len(meant) == 1:
        return meant[0]
    if not meant:
        raise UnknownExperiment(f"there is no experiment {experiment_id!r} in this store")
    named = ", ".join(each.experiment_id for each in meant[:NAMED])
    more = ", …" if len(meant) > NAMED else ""
    raise UnknownExperiment(
        f"{experiment_id!r} could be {len(meant)} experiments: {named}{more}; "
        "write more of the one you mean"
    )
