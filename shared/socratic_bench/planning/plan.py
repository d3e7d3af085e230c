"""Planning: publish an experiment's runs as events, in batches."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Protocol, TypeVar

from socratic_bench.concurrency.retry_policy import RetryPolicy
from socratic_bench.consuming.waits import Waits
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.run import Run, batches
from socratic_bench.errors import StoreUnavailable
from socratic_bench.events.codec import Event
from socratic_bench.events.response_recorded import ResponseRecorded
from socratic_bench.events.run_requested import RunRequested
from socratic_bench.planning.reuse import is_whole
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.stores.aggregates import Aggregates
from socratic_bench.ports.stores.experiments import Experiments
from socratic_bench.ports.stores.leases import Leases
from socratic_bench.ports.stores.responses import Responses

STORE_DEADLINE = 60.0
"""Seconds after which a question to the store without an answer is repeated."""

FIRST_BATCH = 200
"""Runs of the first batch: the runner begins with them while the rest is planned."""

ANSWERS_HELD = 100
"""Runs whose stored answers are in memory at a time: answers of long conversations are large."""

Publish = Callable[[Sequence[Event]], Awaitable[None]]
"""Returns once the broker has taken responsibility for all events."""

T = TypeVar("T")


class PlanStore(Experiments, Responses, Leases, Aggregates, Protocol):
    """The roles of the store that tell what of a plan is done."""


@dataclass(frozen=True, slots=True)
class PlanCounts:
    """The result of planning, in runs. `planned` is the sum of the others."""

    planned: int
    already_done: int
    answered: int
    """Runs with stored answers, which were published again for scoring."""

    requested: int


async def publish_plan(
    experiment: Experiment,
    store: PlanStore,
    publish: Publish,
    *,
    clock: Clock,
    source: str = "planner",
    batch_size: int = 2_000,
    retry_policy: RetryPolicy | None = None,
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    retry_failed: bool = False,
    waits: Waits | None = None,
) -> PlanCounts:
    """Register an experiment and request every run that is neither done nor answered.

    Memory holds one batch of runs at a time; `publish` sets the pace, and waits while the broker is
    full. The first batch is small, and each further one twice as large, up to `batch_size`: calls
    begin while planning goes on. Interrupted planning is repeated from the start: runs and events
    keep their names and ids, so that nothing is added twice.

    `retry_failed` requests one more try of each failed run. A run with all its responses stored is
    not asked again: unscored responses are published again for scoring.

    While the store is unavailable or silent, planning asks it again, by `retry_policy` and after a
    `pause`, and reports the wait to `waits`; then it raises StoreUnavailable. Errors of `publish`
    pass through.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be 1 or more, not {batch_size}")
    patience = _Patience(retry_policy or RetryPolicy(), pause, waits or Waits())
    experiment = await patience.ask(partial(store.register, experiment))
    begun = await patience.ask(partial(_is_begun, store, experiment))
    planned = answered = requested = 0
    for batch in _growing_batches(experiment.runs(), batch_size):
        # A broker with room does not wait: between two batches everybody else has a turn.
        await asyncio.sleep(0)
        done = await patience.ask(partial(_done, store, experiment, batch)) if begun else set()
        failed = set[str]()
        if retry_failed and begun:
            failed = await patience.ask(partial(_failed, store, experiment, batch))
        due = [run for run in batch if run.run_id not in done or run.run_id in failed]
        planned += len(batch)
        if begun:
            answers = await _publish_answers(due, store, patience, publish, source)
            answered += len(answers)
            due = [run for run in due if run.run_id not in answers]
        if due:
            retries = await patience.ask(partial(_retries, store, failed))
            now = clock.now()
            await publish(
                [
                    RunRequested.of(run, source=source, time=now, retry=retries.get(run.run_id, 0))
                    for run in due
                ]
            )
            requested += len(due)
    await patience.ask(partial(store.mark_planned, experiment.experiment_id, clock.now()))
    return PlanCounts(planned, planned - answered - requested, answered, requested)


def _growing_batches(runs: Iterable[Run], largest: int) -> Iterator[list[Run]]:
    """`runs` in order, the first FIRST_BATCH, then twice as many at a time, up to `largest`."""
    remaining, size = iter(runs), min(FIRST_BATCH, largest)
    while batch := list(islice(remaining, size)):
        yield batch
        size = min(2 * size, largest)


async def _is_begun(store: PlanStore, experiment: Experiment) -> bool:
    """Whether a run was called, adopted or done before this planning."""
    experiment_id = experiment.experiment_id
    if (await store.calls(experiment_id)).turns > 0:
        return True
    if (await store.progress(experiment_id)).done > 0:
        return True
    return bool(await store.unscored_responses(experiment_id, 1))


async def _done(store: PlanStore, experiment: Experiment, runs: Sequence[Run]) -> set[str]:
    # D-023: a scored last turn is not enough: the score of an earlier turn may be lost.
    return await store.done_runs(experiment.experiment_id, [run.run_id for run in runs])


async def _failed(store: PlanStore, experiment: Experiment, runs: Sequence[Run]) -> set[str]:
    return await store.failed_runs(experiment.experiment_id, [run.run_id for run in runs])


async def _publish_answers(
    runs: Sequence[Run], store: PlanStore, patience: _Patience, publish: Publish, source: str
) -> set[str]:
    """Publish the stored whole conversations; returns the ids of their runs."""
    answered: set[str] = set()
    for some in batches(runs, ANSWERS_HELD):
        stored = await patience.ask(partial(store.responses, [run.run_id for run in some]))
        whole = {run_id: responses for run_id, responses in stored.items() if is_whole(responses)}
        if whole:
            await publish(
                [
                    ResponseRecorded.of(each, source=source)
                    for responses in whole.values()
                    for each in responses
                ]
            )
            answered |= whole.keys()
    return answered


async def _retries(store: PlanStore, failed: AbstractSet[str]) -> Mapping[str, int]:
    """Return the number of the next request for each failed run."""
    if not failed:
        return {}
    recorded = await store.recorded_failures(failed)
    return {run_id: recorded[run_id].retry + 1 if run_id in recorded else 1 for run_id in failed}


@dataclass(frozen=True, slots=True)
class _Patience:
    """Repeats an idempotent question until the store answers it."""

    policy: RetryPolicy
    pause: Callable[[float], Awaitable[None]]
    waits: Waits

    async def ask(self, question: Callable[[], Awaitable[T]]) -> T:
        attempt = 1
        with self.waits.waiting() as waits_for:
            while True:
                try:
                    async with asyncio.timeout(STORE_DEADLINE):
                        return await question()
                except TimeoutError:
                    silent = f"the store was silent for {STORE_DEADLINE:g} seconds"
                    problem = StoreUnavailable(silent)
                except StoreUnavailable as error:
                    problem = error
                if self.policy.exhausted(attempt):
                    raise problem
                waits_for(problem)
                await self.pause(self.policy.delay(attempt))
                attempt += 1
