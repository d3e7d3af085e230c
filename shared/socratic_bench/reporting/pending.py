"""Which runs of an experiment are not done yet, by name, and what each of them waits for."""

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
"""Runs that are looked up, and held, at a time."""


class PendingStore(Responses, Aggregates, Protocol):
    """The roles of the store that tell which runs are pending."""


class WaitsFor(StrEnum):
    """What a run lacks to be done, as far as the store knows."""

    RESPONSE = "response"
    """A tutor's answer: the run waits in a queue, is being carried out, or got lost."""

    SCORE = "score"
    """Every answer is stored, and one of them has no score yet."""


class PendingRun(BaseModel):
    """A run that is not done, and how far it came."""

    model_config = ConfigDict(frozen=True)

    run_id: str
    model_id: str
    scenario_id: str
    dimension: str
    repeat: int
    waits_for: WaitsFor
    turns_answered: int
    """Turns whose response is stored."""

    turns: int
    """Turns the run has in all."""


async def pending_runs(
    experiment: Experiment, store: PendingStore, *, batch_size: int = BATCH
) -> AsyncIterator[PendingRun]:
    """The runs of an experiment that planning would request again, in the order of the plan.

    One batch of runs is held at a time, however many there are. While work goes on, a run may be
    named that has become done meanwhile.
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
