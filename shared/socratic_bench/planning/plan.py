"""Planning: publish an experiment's runs as events, in batches; remove them with the experiment."""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Final, Protocol, TypeVar

from socratic_bench.concurrency.retry_policy import RetryPolicy
from socratic_bench.consuming.queues import BROADCASTS, RUNNER_RUN_REQUESTED, WORK_QUEUES
from socratic_bench.consuming.waits import Waits
from socratic_bench.domain.aggregates.stopping import goes_on, reaches_in
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.experiment.state import stopped_sentence
from socratic_bench.domain.run import Run, batches
from socratic_bench.errors import ExperimentStopped, StoreUnavailable
from socratic_bench.events.codec import Event
from socratic_bench.events.event_types import ResponseRecorded, RunRequested
from socratic_bench.planning.reuse import Reuse, is_whole
from socratic_bench.ports.broker import Broker
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.stores.aggregates import Aggregates
from socratic_bench.ports.stores.experiments import Experiments
from socratic_bench.ports.stores.leases import Leases
from socratic_bench.ports.stores.responses import NO_LEASE, Responses
from socratic_bench.scoring.profiles import known_composition

STORE_DEADLINE: Final = 60.0
"""Seconds that one question to the store may take before it is asked again."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StorePatience:
    """Asks the store until it answers. What is asked may be asked any number of times."""

    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)
    waits: Waits = field(default_factory=Waits)
    """Knows why a request waits for the store."""

    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Waits for so many seconds between two tries."""

    async def ask(self, question: Callable[[], Awaitable[T]]) -> T:
        """The store's answer. Raises StoreUnavailable once the retry policy is exhausted."""
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
                if self.retry_policy.exhausted(attempt):
                    raise problem
                waits_for(problem)
                await self.pause(self.retry_policy.delay(attempt))
                attempt += 1


FIRST_BATCH = 200
"""Runs of the first batch: the runner begins with them while the rest is planned."""

ANSWERS_HELD = 100
"""Runs whose stored answers are in memory at a time: answers of long conversations are large."""

Publish = Callable[[Sequence[Event]], Awaitable[None]]
"""Returns once the broker has taken responsibility for all events."""


class PlanStore(Experiments, Responses, Leases, Aggregates, Protocol):
    """The roles of the store that tell what of a plan is done."""


@dataclass(frozen=True, slots=True)
class PlanCounts:
    """The result of planning, in runs. `planned` is the sum of the others."""

    planned: int
    already_done: int
    answered: int
    """Runs with stored answers, which were published again for scoring. Of an experiment with a
    grader they are among the requested ones."""

    requested: int


async def as_due(experiment: Experiment, store: PlanStore, now: datetime) -> Experiment:
    """Return a registered experiment with the repeats that are due: all, unless it has `stop_when`.

    A further repeat is due once all runs of those before have ended, all responses have a score,
    and an interval asks for it. This follows from the store alone: every process says the same, and
    the store knows the begun repeats by the runs that ended. Where no further one is due, the runs
    of the returned experiment are done. Raises StoreError.
    """
    manifest, experiment_id = experiment.manifest, experiment.experiment_id
    if manifest.stop_when is None or manifest.stopped_after is not None:
        return experiment
    done = (await store.progress(experiment_id)).done
    begun = experiment.up_to(manifest.begun_repeats(done))
    repeats = begun.manifest.due_repeats
    if done < begun.manifest.planned_runs or repeats == manifest.repeats:
        return begun
    # An earlier look may have begun the next repeat: its answers would change what this one sees.
    if await store.unscored_responses(experiment_id, 1):
        return begun
    cells, composition = await store.cells([experiment_id]), known_composition(manifest.profile)
    reaches = reaches_in(manifest, cells, composition).values()
    if not goes_on(reaches, manifest.stop_when.interval):
        return begun
    further = experiment.up_to(repeats + 1)
    await _adopt_as_before(further, store, now)
    return further


async def _adopt_as_before(further: Experiment, store: PlanStore, now: datetime) -> None:
    """Take over answers to the last repeat, if the repeat before has such answers: an experiment
    that was asked afresh takes over none.
    """
    last = further.manifest.due_repeats
    runs = further.runs(last - 1)
    before = islice(runs, further.manifest.runs_of_a_round)
    for batch in batches(before, ANSWERS_HELD):
        stored = await store.responses([run.run_id for run in batch])
        if any(each.adopted_from for responses in stored.values() for each in responses):
            break
    else:
        return
    reuse = Reuse(further, store, now)
    for batch in batches(further.runs(last), ANSWERS_HELD):
        stored = await store.responses([run.run_id for run in batch])
        copies = await reuse.copies([run for run in batch if run.run_id not in stored])
        adopted = [each for copy in copies.values() for each in copy]
        await store.record(adopted, [NO_LEASE] * len(adopted))


async def resume(
    experiment: Experiment,
    runs: Iterable[Run] | None,
    store: PlanStore,
    publish: Publish,
    *,
    clock: Clock,
    source: str = "planner",
    retry_failed: bool = False,
    batch_size: int = 2_000,
    patience: StorePatience | None = None,
) -> PlanCounts:
    """Request those of these runs of a registered experiment that are neither done nor answered;
    None: of those that are due (`as_due`).

    This plans a new experiment, completes an interrupted plan, and requests lost runs again: runs
    and events keep their names and ids, so that nothing is added twice. A call that went through
    the whole plan marks the experiment as planned.

    Memory holds one batch of runs at a time; `publish` sets the pace, and waits while the broker is
    full. The first batch is small, and each further one twice as large, up to `batch_size`: calls
    begin while planning goes on.

    `retry_failed` requests one more try of each failed run. A run with all its responses stored is
    not asked again: unscored responses are published again for scoring. Of an experiment with a
    grader such runs are requested, since the runner publishes responses with their gradings.

    While the store is unavailable or silent, `patience` asks it again; then it raises
    StoreUnavailable. Raises ExperimentStopped where no call may begin. Errors of `publish` pass
    through.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be 1 or more, not {batch_size}")
    patience = patience or StorePatience()
    await patience.ask(partial(refuse_stopped, store, experiment.experiment_id))
    if runs is None:
        experiment = await patience.ask(partial(as_due, experiment, store, clock.now()))
        runs = experiment.runs()
    begun = await patience.ask(partial(_is_begun, store, experiment))
    planned = answered = requested = 0
    for batch in _growing_batches(runs, batch_size):
        # A broker with room does not wait: between two batches everybody else has a turn.
        await asyncio.sleep(0)
        done = await patience.ask(partial(_done, store, experiment, batch)) if begun else set()
        failed = set[str]()
        if retry_failed and begun:
            failed = await patience.ask(partial(_failed, store, experiment, batch))
        due = [run for run in batch if run.run_id not in done or run.run_id in failed]
        planned += len(batch)
        # Of an experiment with a grader, only the runner publishes: it adds the gradings.
        if begun and experiment.manifest.use_llm_exploratory is None:
            answers = await _publish_answers(due, store, patience, publish, source)
            answered += len(answers)
            due = [run for run in due if run.run_id not in answers]
        if due:
            retries = await patience.ask(partial(_retries, store, failed))
            now = clock.now()
            await publish(
                [
                    RunRequested.of(
                        run,
                        source=source,
                        time=now,
                        retry=retries.get(run.run_id, 0),
                        priority=experiment.manifest.priority,
                    )
                    for run in due
                ]
            )
            requested += len(due)
    if planned == experiment.manifest.planned_runs:
        await patience.ask(partial(store.mark_planned, experiment.experiment_id, clock.now()))
    return PlanCounts(planned, planned - answered - requested, answered, requested)


def _growing_batches(runs: Iterable[Run], largest: int) -> Iterator[list[Run]]:
    """`runs` in order, the first FIRST_BATCH, then twice as many at a time, up to `largest`."""
    remaining, size = iter(runs), min(FIRST_BATCH, largest)
    while batch := list(islice(remaining, size)):
        yield batch
        size = min(2 * size, largest)


async def refuse_stopped(store: Experiments, experiment_id: str) -> None:
    """Raise ExperimentStopped if the store has this experiment and no call of it may begin."""
    for state in (await store.states([experiment_id])).values():
        if not state.calls_may_begin:
            raise ExperimentStopped(stopped_sentence(experiment_id, state))


async def _is_begun(store: PlanStore, experiment: Experiment) -> bool:
    """Whether a run was called, adopted or done before this planning."""
    experiment_id = experiment.experiment_id
    if (await store.calls(experiment_id)).turns > 0:
        return True
    if (await store.progress(experiment_id)).done > 0:
        return True
    return bool(await store.unscored_responses(experiment_id, 1))


async def _done(store: Aggregates, experiment: Experiment, runs: Sequence[Run]) -> set[str]:
    # A scored last turn is not enough: the score of an earlier turn may be lost.
    return await store.done_runs(experiment.experiment_id, [run.run_id for run in runs])


async def _failed(store: Aggregates, experiment: Experiment, runs: Sequence[Run]) -> set[str]:
    return await store.failed_runs(experiment.experiment_id, [run.run_id for run in runs])


async def _publish_answers(
    runs: Sequence[Run], store: Responses, patience: StorePatience, publish: Publish, source: str
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


async def _retries(store: Responses, failed: AbstractSet[str]) -> Mapping[str, int]:
    """Return the number of the next request for each failed run."""
    if not failed:
        return {}
    recorded = await store.recorded_failures(failed)
    return {run_id: recorded[run_id].retry + 1 if run_id in recorded else 1 for run_id in failed}


async def remove_rows(store: Experiments, experiment_id: str) -> AsyncIterator[int]:
    """Remove all rows of a deleted experiment; yields the number of each step.

    A step takes a moment. A later call removes what an interrupted one left.
    """
    while rows := await store.delete_rows(experiment_id):
        yield rows


async def remove_requests(broker: Broker, store: Experiments, experiment: Experiment) -> None:
    """Remove the waiting requests in a deleted experiment's groups.

    Keeps the groups that another open experiment uses. Raises BrokerError.
    """
    groups = await _unneeded(store, experiment)
    await broker.declare(WORK_QUEUES, BROADCASTS)
    for group in sorted(groups):
        await broker.remove_group(RUNNER_RUN_REQUESTED.name, group)


async def _unneeded(store: Experiments, experiment: Experiment) -> Collection[str]:
    """Return its groups of requests that no other open experiment uses."""
    running = [each for each in await store.running() if each.state.calls_may_begin]
    needed = frozenset[str]().union(*(each.groups for each in running))
    return experiment.manifest.request_groups - needed
