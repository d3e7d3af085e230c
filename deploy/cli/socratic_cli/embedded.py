"""The whole benchmark in one process: plan, run, score, aggregate.

The services are the same as anywhere else; here they share a process, a broker and a store. The
broker dies with the process and the store does not: a benchmark that was cut off is planned again,
and what is stored is neither asked for nor counted a second time.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from socratic_bench.adapters.memory.broker import MemoryBroker
from socratic_bench.adapters.system.clock import SystemClock
from socratic_bench.concurrency.retry_policy import RetryPolicy
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.consuming.waits import Waits, gravest
from socratic_bench.consuming.worker import Worker
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.errors import StoreNotWritable, StoreUnavailable
from socratic_bench.events.codec import Event
from socratic_bench.events.message import to_message
from socratic_bench.hosting.failures import first_cause
from socratic_bench.hosting.garbage import quiet_garbage_collector
from socratic_bench.hosting.owners import new_owner
from socratic_bench.planning.plan import PlanCounts, publish_plan
from socratic_bench.ports.broker import DeadLetter
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.stores.experiments import Progress
from socratic_bench.ports.stores.store import Store
from socratic_bench.service_settings import load_settings
from socratic_curator.bootstrap import curator_workers
from socratic_curator.settings import CuratorSettings
from socratic_judge.bootstrap import judge_worker
from socratic_judge.settings import JudgeSettings
from socratic_runner.bootstrap import runner_worker
from socratic_runner.clients import OpenClient
from socratic_runner.settings import RunnerSettings
from socratic_runner.troubles import Troubles

SOURCE = "socratic-bench"
WATCH_INTERVAL = 0.05
"""Seconds between two looks at whether anything is left to do."""

MAX_WAITING = 2_000
"""Messages that wait in a queue, at most: planning goes no faster than the runs are carried out."""

ENDLESS = RetryPolicy(attempts=sys.maxsize)
"""Planning waits for the store as long as the workers do: its end would cancel their calls."""

DRAIN_DEADLINE = 10.0
"""Seconds that what is in hand has to end once a stop was asked for; calls have as long as each may
take."""


@dataclass(frozen=True, slots=True)
class BenchmarkResult:
    """What one execution came to."""

    experiment: Experiment
    progress: Progress
    plan: PlanCounts | None
    """None if it was stopped before planning was done."""

    calls: int
    """Calls to models begun in this execution."""

    dead_letters: tuple[DeadLetter, ...]
    """Messages nobody could handle; their runs are neither scored nor failed."""

    stopped: bool
    """Whether it was asked to stop while something was left to do."""

    state: ExperimentState
    """What somebody decided about the experiment meanwhile."""


@dataclass(slots=True)
class Benchmark:
    """Executes one experiment in this process."""

    experiment: Experiment
    store: Store
    open_client: OpenClient
    clock: Clock = field(default_factory=SystemClock)
    on_progress: Callable[[Progress], Awaitable[None]] | None = None
    """Called a few times a second while work goes on."""

    on_wait: Callable[[Exception | None], None] | None = None
    """Called as often with the trouble for which work waits; with None while none does."""

    retry_failed: bool = False
    """Whether runs that failed are tried again."""

    alone: bool = False
    """Whether no other process carries out runs with this store."""

    troubles: Troubles | None = None
    """Where to look which models fail; without it the log tells of them."""

    _stop: asyncio.Event = field(default_factory=asyncio.Event)
    _cut_short: bool = False
    _calls_before: int = 0

    def stop(self) -> None:
        """Take up nothing new; what is in flight is finished, within a deadline, and stored."""
        self._stop.set()

    async def execute(self) -> BenchmarkResult:
        """Carry out every run that is not done yet, and aggregate it.

        An unavailable store is waited for. Raises ExperimentStopped for one that is paused,
        cancelled or deleted at first, StoreNotWritable where the store takes nothing before any
        call was begun, StoreBroken and other errors that end all work; what is stored stays.
        """
        experiment = await self.store.register(self.experiment)
        experiment_id = experiment.experiment_id
        self._calls_before = (await self.store.calls(experiment_id)).calls
        try:
            with quiet_garbage_collector():
                async with self._services() as (broker, workers):
                    plan = await self._carry_out(experiment, broker, workers)
                    dead = [
                        letter
                        for queue in WORK_QUEUES
                        for letter in await broker.dead_letters(queue.name, limit=sys.maxsize)
                    ]
        except BaseExceptionGroup as group:
            raise first_cause(group) from group
        states = await self.store.states([experiment_id])
        calls = await self.store.calls(experiment_id)
        progress = await self.store.progress(experiment_id)
        if progress.done >= progress.planned:
            await self.store.complete(experiment_id, self.clock.now())
        return BenchmarkResult(
            experiment=experiment,
            progress=progress,
            plan=plan,
            calls=calls.calls - self._calls_before,
            dead_letters=tuple(dead),
            stopped=self._cut_short,
            state=states[experiment_id],
        )

    @asynccontextmanager
    async def _services(self) -> AsyncIterator[tuple[MemoryBroker, Sequence[Worker]]]:
        broker = MemoryBroker(max_waiting=MAX_WAITING)
        try:
            await broker.declare(WORK_QUEUES, BROADCASTS)
            async with runner_worker(
                broker,
                self.store,
                self.clock,
                self.open_client,
                load_settings(RunnerSettings),
                owner=new_owner("embedded"),
                alone=self.alone,
                troubles=self.troubles,
            ) as runner:
                judge = judge_worker(broker, self.clock, load_settings(JudgeSettings))
                curators = curator_workers(
                    broker, self.store, self.clock, load_settings(CuratorSettings)
                )
                yield broker, (runner, judge, *curators)
        finally:
            await broker.close()

    async def _carry_out(
        self, experiment: Experiment, broker: MemoryBroker, workers: Sequence[Worker]
    ) -> PlanCounts | None:
        """Run the workers until everything planned is settled, or a stop was asked for."""

        async def publish(events: Sequence[Event]) -> None:
            await broker.publish([to_message(event) for event in events])

        planner_waits = Waits()

        def waits_for() -> Exception | None:
            errors = (planner_waits.error, *(worker.waits_for for worker in workers))
            return gravest(error for error in errors if error is not None)

        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(worker.run()) for worker in workers]
            planning = tasks.create_task(
                publish_plan(
                    experiment,
                    self.store,
                    publish,
                    clock=self.clock,
                    source=SOURCE,
                    retry_failed=self.retry_failed,
                    retry_policy=ENDLESS,
                    waits=planner_waits,
                )
            )
            self._cut_short = not await self._watch(experiment, broker, planning, waits_for)
            planning.cancel()
            # In the order in which the data flows: what one hands on, the next still takes.
            for worker, task in zip(workers, running, strict=True):
                worker.drain()
                deadline = max(DRAIN_DEADLINE, worker.longest())
                _, unfinished = await asyncio.wait((task,), timeout=deadline)
                for late in unfinished:
                    late.cancel()
        return None if planning.cancelled() else planning.result()

    async def _watch(
        self,
        experiment: Experiment,
        broker: MemoryBroker,
        planning: asyncio.Task[PlanCounts],
        waits_for: Callable[[], Exception | None],
    ) -> bool:
        """Wait until planning is done and no message is left; False if a stop came first.

        Raises StoreNotWritable if that is waited for and no call was begun: there is no reply to
        be kept.
        """
        while not (planning.done() and broker.outstanding == 0):
            error = waits_for()
            # D-062: before the first call nothing is lost by ending; after it, paid replies are.
            if isinstance(error, StoreNotWritable) and not await self._has_called(experiment):
                raise error
            if self.on_wait is not None:
                self.on_wait(error)
            if self.on_progress is not None:
                # The workers wait for a store that is away; so does whoever only looks on.
                with suppress(StoreUnavailable):
                    await self.on_progress(await self.store.progress(experiment.experiment_id))
            try:
                async with asyncio.timeout(WATCH_INTERVAL):
                    await self._stop.wait()
            except TimeoutError:
                continue
            return False
        if self.on_wait is not None:
            self.on_wait(None)
        return True

    async def _has_called(self, experiment: Experiment) -> bool:
        """Whether any call was begun in this execution; yes, if the store cannot tell."""
        try:
            calls = await self.store.calls(experiment.experiment_id)
        except StoreUnavailable:
            return True
        return calls.calls > self._calls_before
