"""Planning: an experiment's runs, published as events in batches."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
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
"""Seconds that one question to the store may take before it is asked again."""

ANSWERS_HELD = 100
"""Runs whose stored answers are held at a time: those of a long conversation are large."""

Publish = Callable[[Sequence[Event]], Awaitable[None]]
"""Returns once the broker has taken responsibility for all of the events."""

T = TypeVar("T")


class PlanStore(Experiments, Responses, Leases, Aggregates, Protocol):
    """The roles of the store that tell what of a plan is done."""


@dataclass(frozen=True, slots=True)
class PlanCounts:
    """What planning came to, in runs. `planned` is the sum of the others."""

    planned: int
    already_done: int
    answered: int
    """Their answers are stored, and were published once more to be scored."""

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
    """Register an experiment and request every run of it that is neither done nor answered.

    One batch of runs is held at a time, however many there are; `publish` sets the pace, and waits
    as long as the broker is full. Planning that was cut off is repeated from the start: a run has
    the same name and its event the same id every time, so nothing is added twice.

    With `retry_failed`, runs that failed are requested for one more try each. A stored response is
    never asked for twice: one that is not scored yet is published to be.

    The store is asked again, as `retry_policy` says and after a `pause`, while it is unavailable
    or silent, which `waits` knows meanwhile; StoreUnavailable is raised once that is exhausted.
    Whatever `publish` raises is passed on.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be 1 or more, not {batch_size}")
    patience = _Patience(retry_policy or RetryPolicy(), pause, waits or Waits())
    experiment = await patience.ask(partial(store.register, experiment))
    begun = await patience.ask(partial(_is_begun, store, experiment))
    planned = answered = requested = 0
    for batch in batches(experiment.runs(), batch_size):
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


async def _is_begun(store: PlanStore, experiment: Experiment) -> bool:
    """Whether any run was taken up or taken over before this planning, or failed without a call."""
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
    """Publish the conversations that are stored to their end; returns whose they are."""
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
    """Which request it is for each run that is to be tried again."""
    if not failed:
        return {}
    recorded = await store.recorded_failures(failed)
    return {run_id: recorded[run_id].retry + 1 if run_id in recorded else 1 for run_id in failed}


@dataclass(frozen=True, slots=True)
class _Patience:
    """Asks the store until it answers. What is asked may be asked any number of times."""

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
