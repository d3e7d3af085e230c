"""The pending runs of an experiment, by name, with the missing part of each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import StrEnum
from itertools import islice
from typing import Protocol

from pydantic import BaseModel, ConfigDict

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.run import Run
from socratic_bench.ports.stores.aggregates import Aggregates
from socratic_bench.ports.stores.responses import Responses

BATCH = 500
"""Runs in memory at a time."""


class PendingStore(Responses, Aggregates, Protocol):
    """The roles of the store that tell which runs are pending."""


class WaitsFor(StrEnum):
    """The part that a run lacks in the store."""

    RESPONSE = "response"
    """A tutor's answer: the run waits in a queue, is in hand, or got lost."""

    SCORE = "score"
    """A score: the store has every answer, and one without a score."""


class PendingRun(BaseModel):
    """A pending run and its progress."""

    model_config = ConfigDict(frozen=True)

    run_id: str
    model_id: str
    scenario_id: str
    dimension: str
    repeat: int
    waits_for: WaitsFor
    turns_answered: int
    """Turns with a stored response."""

    turns: int
    """Turns of the run in all."""


async def pending_runs(
    experiment: Experiment, store: PendingStore, *, batch_size: int = BATCH
) -> AsyncIterator[PendingRun]:
    """Yield the pending runs of an experiment, in the order of the plan.

    Memory holds one batch of runs at a time. While work goes on, a yielded run may already be done.
    """
    runs = experiment.runs()
    while batch := list(islice(runs, batch_size)):
        done = await store.done_runs(experiment.experiment_id, [run.run_id for run in batch])
        pending = [run for run in batch if run.run_id not in done]
        if not pending:
            continue
        responses = await store.responses([run.run_id for run in pending])
        for run in pending:
            answered = responses.get(run.run_id, ())
            over = bool(answered) and answered[-1].last_turn
            yield _pending(experiment, run, len(answered), over=over)


def _pending(experiment: Experiment, run: Run, answered: int, *, over: bool) -> PendingRun:
    return PendingRun(
        run_id=run.run_id,
        model_id=run.model_id,
        scenario_id=run.scenario_id,
        dimension=run.dimension,
        repeat=run.repeat,
        waits_for=WaitsFor.SCORE if over else WaitsFor.RESPONSE,
        turns_answered=answered,
        turns=experiment.manifest.scenarios_by_id[run.scenario_id].turns,
    )
