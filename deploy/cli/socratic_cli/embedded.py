"""The whole benchmark in one process: plan, run, score, aggregate.

The services are the same as in separate processes; here they share a process, a broker and a
store. The broker ends with the process, the store stays. An interrupted benchmark is planned
again, and no stored response is requested or counted twice.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

from socratic_bench.adapters.brokers.memory.broker import MemoryBroker
from socratic_bench.adapters.clock import SystemClock
from socratic_bench.concurrency.retry_policy import RetryPolicy
from socratic_bench.consuming.queues import BROADCASTS, RUNNER_RUN_REQUESTED, WORK_QUEUES
from socratic_bench.consuming.waits import Waits, gravest
from socratic_bench.consuming.worker import Worker
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.errors import StoreNotWritable, StoreUnavailable
from socratic_bench.events.codec import Event, to_message
from socratic_bench.hosting.process import quiet_garbage_collector
from socratic_bench.hosting.starting import first_cause, new_owner
from socratic_bench.planning.plan import PlanCounts, StorePatience, as_due, resume
from socratic_bench.ports.broker import DeadLetter
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.stores.experiments import Progress
from socratic_bench.ports.stores.limits import SharedLimits
from socratic_bench.ports.stores.store import Store
from socratic_bench.service_settings import load_settings
from socratic_cli.scoring_workers import MAX_WAITING, drain, finish, scoring_workers
from socratic_runner.bootstrap import runner_dispatcher, runner_worker, unwatched
from socratic_runner.conversations.call_outcomes import UNOBSERVED
from socratic_runner.model_pool import OpenClient
from socratic_runner.settings import RunnerSettings
from socratic_runner.troubles import Troubles, tell_the_log

SOURCE = "socratic-bench"
WATCH_INTERVAL = 0.05
"""Seconds between two checks for remaining work."""

PLANNED_AT_ONCE = 200
"""Runs that are planned without a pause: planning shares a thread with calls, which wait."""

ENDLESS = RetryPolicy(attempts=sys.maxsize)
"""Planning waits for the store as long as the workers do: the end of planning would cancel their
calls."""


@dataclass(frozen=True, slots=True)
class BenchmarkResult:
    """The result of one execution."""

    experiment: Experiment
    progress: Progress
    plan: PlanCounts | None
    """None if it was stopped before the end of planning."""

    calls: int
    """Calls of models begun in this execution."""

    dead_letters: tuple[DeadLetter, ...]
    """Messages that no handler could handle; their runs are neither scored nor failed."""

    stopped: bool
    """True if it was stopped with work left."""

    state: ExperimentState
    """The state that a person gave the experiment meanwhile."""


@dataclass(slots=True)
class Benchmark:
    """Executes one experiment in this process."""

    experiment: Experiment
    store: Store
    open_client: OpenClient
    limits: SharedLimits
    """Where runners share the limits of models: the store, or memory for a runner alone."""

    clock: Clock = field(default_factory=SystemClock)
    on_progress: Callable[[Progress], Awaitable[None]] | None = None
    """Called a few times a second during work, and with the progress at its end."""

    on_wait: Callable[[Exception | None], None] | None = None
    """Called as often with the trouble that work waits for; with None without one."""

    retry_failed: bool = False
    """True to retry failed runs."""

    troubles: Troubles = field(default_factory=partial(Troubles, UNOBSERVED, tell_the_log))
    """Collects the failing models, and tells of them."""

    _stop: asyncio.Event = field(default_factory=asyncio.Event)
    _cut_short: bool = False
    _calls_before: int = 0

    def stop(self) -> None:
        """Begin no more work; finish calls in flight within a deadline, and store them."""
        self._stop.set()

    async def execute(self) -> BenchmarkResult:
        """Carry out every missing run, and aggregate it.

        Waits for an unavailable store. Raises ExperimentStopped for an experiment that is paused,
        cancelled or deleted at the start, StoreNotWritable for a read-only store before the first
        call, StoreBroken and other errors that end all work. Stored results stay.
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
        manifest = (await as_due(experiment, self.store, self.clock.now())).manifest
        if (await self.store.progress(experiment_id)).done >= manifest.planned_runs:
            await self.store.complete(experiment_id, self.clock.now(), manifest.stopped_after)
        progress = await self.store.progress(experiment_id)
        if self.on_progress is not None:
            with suppress(StoreUnavailable):
                await self.on_progress(progress)
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
            settings = load_settings(RunnerSettings)
            async with runner_dispatcher(
                broker.publish,
                self.store,
                self.clock,
                self.open_client,
                settings,
                owner=new_owner("embedded"),
                limits=self.limits,
                observer=UNOBSERVED,
                troubles=self.troubles,
                watch=unwatched,
            ) as dispatcher:
                runner = runner_worker(broker, dispatcher, settings)
                yield broker, (runner, *scoring_workers(broker, self.store, self.clock))
        finally:
            await broker.close()

    async def _carry_out(
        self, experiment: Experiment, broker: MemoryBroker, workers: Sequence[Worker]
    ) -> PlanCounts | None:
        """Run the workers until all planned runs are settled, or a stop."""

        async def publish(events: Sequence[Event]) -> None:
            await broker.publish([to_message(event) for event in events])

        planner_waits = Waits()

        def waits_for() -> Exception | None:
            errors = (planner_waits.error, *(worker.waits_for for worker in workers))
            return gravest(error for error in errors if error is not None)

        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(worker.run()) for worker in workers]
            planning = tasks.create_task(
                resume(
                    experiment,
                    None,
                    self.store,
                    publish,
                    clock=self.clock,
                    source=SOURCE,
                    retry_failed=self.retry_failed,
                    batch_size=PLANNED_AT_ONCE,
                    patience=StorePatience(ENDLESS, planner_waits),
                )
            )
            self._cut_short = not await self._watch(
                experiment, broker, planning, workers, waits_for
            )
            planning.cancel()
            await drain(workers[0], running[0])
            await finish(broker, workers[1:], running[1:])
        return None if planning.cancelled() else planning.result()

    async def _watch(
        self,
        experiment: Experiment,
        broker: MemoryBroker,
        planning: asyncio.Task[PlanCounts],
        workers: Sequence[Worker],
        waits_for: Callable[[], Exception | None],
    ) -> bool:
        """Wait until planning ends and no message is left; False if a stop came first.

        Once all calls are made, the workers pause no more: no further messages come to gather.

        Raises StoreNotWritable if the work waits for that before the first call: there is no reply
        to lose.
        """
        while not (planning.done() and broker.outstanding == 0):
            if planning.done() and broker.outstanding_in(RUNNER_RUN_REQUESTED.name) == 0:
                for worker in workers:
                    worker.hurry()
            error = waits_for()
            # D-057: ending before the first call loses nothing; after it, paid replies would be
            # lost.
            if isinstance(error, StoreNotWritable) and not await self._has_called(experiment):
                raise error
            if self.on_wait is not None:
                self.on_wait(error)
            if self.on_progress is not None:
                # The workers wait for an unavailable store, and so does this loop.
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
        """Return whether this execution began a call; True if the store cannot tell."""
        try:
            calls = await self.store.calls(experiment.experiment_id)
        except StoreUnavailable:
            return True
        return calls.calls > self._calls_before
