"""Planning: an experiment's runs, published as events in batches."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TypeVar

from socratic_bench.consuming.retry_policy import RetryPolicy
from socratic_bench.domain.manifest import Experiment
from socratic_bench.domain.run import Run
from socratic_bench.errors import StoreUnavailable
from socratic_bench.events.codec import Event
from socratic_bench.events.run_requested import RunRequested
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.store import Store

STORE_DEADLINE = 60.0
"""Seconds that one question to the store may take before it is asked again."""

Publish = Callable[[Sequence[Event]], Awaitable[None]]
"""Returns once the broker has taken responsibility for all of the events."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PlanCounts:
    """What planning came to, in runs. `planned` is the sum of the other two."""

    planned: int
    already_done: int
    published: int


async def publish_plan(
    experiment: Experiment,
    store: Store,
    publish: Publish,
    *,
    clock: Clock,
    source: str = "planner",
    batch_size: int = 500,
    retry_policy: RetryPolicy | None = None,
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    again: AbstractSet[str] = frozenset(),
) -> PlanCounts:
    """Register an experiment and request every run of it that is not done yet.

    One batch of runs is held at a time, however many there are; `publish` sets the pace, and waits
    as long as the broker is full. Planning that was cut off is repeated from the start: a run has
    the same name and its event the same id every time, so nothing is added twice.

    Runs named in `again` are requested even if they failed, for one more try each; a stored
    response is never asked for twice.

    The store is asked again, as `retry_policy` says and after a `pause`, while it is unavailable
    or silent; StoreUnavailable is raised once that is exhausted. Whatever `publish` raises is
    passed on.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be 1 or more, not {batch_size}")
    patience = _Patience(retry_policy or RetryPolicy(), pause)
    experiment = await patience.ask(partial(store.register, experiment))
    begun = await patience.ask(partial(_is_begun, store, experiment))
    planned = published = 0
    for batch in _batches(experiment.runs(), batch_size):
        done = await patience.ask(partial(_done, store, experiment, batch)) if begun else ()
        due = [run for run in batch if run.run_id not in done or run.run_id in again]
        now = clock.now()
        if due:
            retries = await patience.ask(partial(_retries, store, due, again))
            await publish(
                [
                    RunRequested.of(run, source=source, time=now, retry=retries.get(run.run_id, 0))
                    for run in due
                ]
            )
        planned += len(batch)
        published += len(due)
    await patience.ask(partial(store.mark_planned, experiment.experiment_id, clock.now()))
    return PlanCounts(planned, planned - published, published)


def _batches(runs: Iterator[Run], size: int) -> Iterator[list[Run]]:
    while batch := list(islice(runs, size)):
        yield batch


async def _is_begun(store: Store, experiment: Experiment) -> bool:
    """Whether any run was taken up before this planning, or failed without a call."""
    calls = await store.calls(experiment.experiment_id)
    if calls.turns > 0:
        return True
    progress = await store.progress(experiment.experiment_id)
    return progress.done > 0


async def _done(store: Store, experiment: Experiment, runs: Sequence[Run]) -> set[str]:
    return await store.done_runs(experiment.experiment_id, [run.run_id for run in runs])


async def _retries(store: Store, due: Sequence[Run], again: AbstractSet[str]) -> Mapping[str, int]:
    """Which request it is for each run that is to be tried again."""
    wanted = [run.run_id for run in due if run.run_id in again]
    if not wanted:
        return {}
    failed = await store.recorded_failures(wanted)
    return {run_id: failed[run_id].retry + 1 if run_id in failed else 1 for run_id in wanted}


@dataclass(frozen=True, slots=True)
class _Patience:
    """Asks the store until it answers. What is asked may be asked any number of times."""

    policy: RetryPolicy
    pause: Callable[[float], Awaitable[None]]

    async def ask(self, question: Callable[[], Awaitable[T]]) -> T:
        attempt = 1
        while True:
            try:
                async with asyncio.timeout(STORE_DEADLINE):
                    return await question()
            except TimeoutError:
                problem = StoreUnavailable(f"the store was silent for {STORE_DEADLINE:g} seconds")
            except StoreUnavailable as error:
                problem = error
            if self.policy.exhausted(attempt):
                raise problem
            await self.pause(self.policy.delay(attempt))
            attempt += 1
