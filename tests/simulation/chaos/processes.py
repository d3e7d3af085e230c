"""The processes of the simulation: what each kind runs, and the ways in which one ends."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.consuming.worker import Worker
from socratic_bench.errors import BrokerError
from socratic_curator.bootstrap import curator_workers
from socratic_curator.reconciling.reconciler import Reconciler, reconciling
from socratic_curator.settings import CuratorSettings
from socratic_judge.bootstrap import judge_worker
from socratic_judge.settings import JudgeSettings
from socratic_runner.bootstrap import runner_dispatcher, runner_worker, unwatched
from socratic_runner.conversations.call_outcomes import UNOBSERVED
from socratic_runner.settings import RunnerSettings
from socratic_runner.troubles import Troubles
from tests.simulation.chaos.benchmark import START
from tests.simulation.chaos.broker_server import BrokerPort
from tests.simulation.chaos.chance import now
from tests.simulation.chaos.provider import Client, Provider
from tests.simulation.chaos.store_server import StorePort

# A failed run is a result: with these, no fault of the simulation ends one.
RUNNER: Final = RunnerSettings(runner_attempts=100, runner_patient_attempts=1_000)
JUDGE: Final = JudgeSettings()
CURATOR: Final = CuratorSettings()
DRAIN_SECONDS: Final = 20.0
START_SECONDS: Final = (0.5, 5.0)
"""Seconds from the start of a process to its first request."""


@dataclass(slots=True, eq=False)
class ProcessClock:
    """The wall clock of a process, which may be wrong."""

    wrong_by: float = 0.0
    """Seconds."""

    def now(self) -> datetime:
        return START + timedelta(seconds=now() + self.wrong_by)


@dataclass(slots=True, eq=False)
class Process:
    """One process, from its start to its end."""

    name: str
    """Its place, such as `runner-1`, and its number among the processes of that place."""

    kind: str
    broker: BrokerPort
    store: StorePort
    provider: Provider
    clock: ProcessClock
    chance: random.Random
    on_given_up: Callable[[Process, str], None]
    """Hears that it leaves calls behind, and why."""

    workers: Sequence[Worker] = ()
    reconciler: Reconciler | None = None
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)
    main: asyncio.Task[None] | None = None
    is_frozen: bool = False
    draining: asyncio.Event = field(default_factory=asyncio.Event)
    gave_up: str | None = None
    """Why it ended by itself, which no process may do."""

    async def run(self) -> None:
        """Work until it is drained or killed."""
        await asyncio.sleep(self.chance.uniform(*START_SECONDS))
        await self._declare()
        async with _KINDS[self.kind](self) as workers:
            self.workers = workers
            if self.draining.is_set():
                return
            async with asyncio.TaskGroup() as tasks:
                running = [tasks.create_task(worker.run()) for worker in workers]
                await self._drained(running)

    @property
    def is_alive(self) -> bool:
        return self.main is not None and not self.main.done() and not self.store.wire.is_cut

    def drain(self) -> None:
        """Tell it to stop: it finishes what it has in hand."""
        self.draining.set()
        for worker in self.workers:
            worker.drain()

    async def _declare(self) -> None:
        """Declare all queues, as often as it takes."""
        while True:
            try:
                await self.broker.declare(WORK_QUEUES, BROADCASTS)
            except BrokerError:
                await asyncio.sleep(1.0)
            else:
                return

    async def _drained(self, running: Sequence[asyncio.Task[None]]) -> None:
        """Wait for the end of the workers, and cancel those that take too long to drain."""
        draining = asyncio.create_task(self.draining.wait())
        await asyncio.wait([draining, *running], return_when=asyncio.FIRST_COMPLETED)
        if not draining.done():
            draining.cancel()
            return
        longest = max(DRAIN_SECONDS, *(worker.longest() for worker in self.workers))
        await asyncio.wait(running, timeout=longest)
        if late := [task for task in running if not task.done()]:
            self.on_given_up(self, "a stop that ended before the call")
            for task in late:
                task.cancel()


def _untold(_trouble: object) -> None:
    """Log nothing."""


@asynccontextmanager
async def _runner(process: Process) -> AsyncIterator[Sequence[Worker]]:
    store = process.store.as_store()
    dispatching = runner_dispatcher(
        process.broker.publish,
        store,
        process.clock,
        lambda model: Client(process.provider, process.name, model),
        RUNNER,
        owner=process.name,
        limits=store,
        observer=UNOBSERVED,
        troubles=Troubles(UNOBSERVED, _untold, now),
        watch=unwatched,
    )
    async with dispatching as dispatcher:
        yield [runner_worker(process.broker.as_broker(), dispatcher, RUNNER)]


@asynccontextmanager
async def _judge(process: Process) -> AsyncIterator[Sequence[Worker]]:
    yield [judge_worker(process.broker.as_broker(), process.clock, JUDGE)]


@asynccontextmanager
async def _curator(process: Process) -> AsyncIterator[Sequence[Worker]]:
    store = process.store.as_store()
    broker = process.broker.as_broker()
    reconciler = Reconciler(store, broker, process.clock, process.name, monotonic=now)
    process.reconciler = reconciler
    async with reconciling(reconciler):
        yield curator_workers(broker, store, process.clock, CURATOR)


_KINDS: Final[dict[str, Callable[[Process], Any]]] = {
    "runner": _runner,
    "judge": _judge,
    "curator": _curator,
}
