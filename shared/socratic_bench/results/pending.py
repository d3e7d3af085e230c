"""The pending runs of an experiment, by name, with the missing part of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from enum import StrEnum
from typing import Protocol, TypeAlias

from pydantic import BaseModel, ConfigDict

from socratic_bench.domain.aggregates.cell import Cell
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.run import Run, batches
from socratic_bench.ports.stores.aggregates import Aggregates
from socratic_bench.ports.stores.responses import Responses
from socratic_bench.scoring.exchange import Status

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
    """Yield the pending runs of an experiment, those of conversations with runs left first.

    The cells tell which conversations those are, so the first pending runs of a million are found
    without reading the done ones. Then come runs that ended before all their responses were scored.
    Both come in the order of the plan. Memory holds one batch of runs at a time. While work goes
    on, a yielded run may already be done.
    """
    unfinished, unscored = await _conversations(experiment, store)
    for conversations in (unfinished, unscored):
        for batch in batches(_runs(experiment, conversations), batch_size):
            async for pending in _pending_among(experiment, store, batch):
                yield pending


async def _pending_among(
    experiment: Experiment, store: PendingStore, batch: Sequence[Run]
) -> AsyncIterator[PendingRun]:
    done = await store.done_runs(experiment.experiment_id, [run.run_id for run in batch])
    pending = [run for run in batch if run.run_id not in done]
    if not pending:
        return
    responses = await store.responses([run.run_id for run in pending])
    for run in pending:
        answered = responses.get(run.run_id, ())
        over = bool(answered) and answered[-1].last_turn
        yield _pending(experiment, run, len(answered), over=over)


Conversation: TypeAlias = tuple[str, str]
"""The ids of a model and of a scenario."""


async def _conversations(
    experiment: Experiment, store: Aggregates
) -> tuple[set[Conversation], set[Conversation]]:
    """Return the conversations with runs left, and others that may have an unscored response."""
    manifest = experiment.manifest
    cells: defaultdict[Conversation, list[Cell]] = defaultdict(list)
    for cell in await store.cells([experiment.experiment_id]):
        if cell.key.profile == manifest.profile:
            cells[cell.key.model_id, cell.key.scenario_id].append(cell)
    unfinished, unscored = set[Conversation](), set[Conversation]()
    for model in manifest.models:
        for scenario in manifest.scenarios:
            conversation = model.id, scenario.id
            of_turns = cells[conversation]
            if sum(cell.runs_ended for cell in of_turns) < manifest.due_repeats:
                unfinished.add(conversation)
            elif not _is_scored(of_turns, scenario.turns, manifest.due_repeats):
                unscored.add(conversation)
    return unfinished, unscored


def _is_scored(cells: Collection[Cell], turns: int, repeats: int) -> bool:
    """Whether every response of finished runs has a score: each turn has one of every run.

    A failed run may have a response that no cell counts.
    """
    return len(cells) == turns and all(
        cell.responses == repeats and Status.ERROR not in cell.statuses for cell in cells
    )


def _runs(experiment: Experiment, conversations: Collection[Conversation]) -> Iterator[Run]:
    """Yield the planned runs of these conversations, in the order of the plan."""
    manifest = experiment.manifest
    asked = [
        (model.id, scenario)
        for scenario in manifest.scenarios
        for model in manifest.models
        if (model.id, scenario.id) in conversations
    ]
    for repeat in range(1, manifest.due_repeats + 1):
        for model_id, scenario in asked:
            yield experiment.run(model_id, scenario, repeat)


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
