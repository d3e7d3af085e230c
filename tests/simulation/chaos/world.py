"""The world of one run: servers, processes, a provider, and an operator who repairs everything."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any, Final

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.errors import BrokerError, StoreError
from socratic_bench.events.codec import Event, Message, to_message
from socratic_bench.planning.plan import resume
from socratic_bench.ports.broker import SUSPECT_AFTER, DeadLetter
from tests.simulation.chaos.benchmark import MOST_A_CALL, Pace, experiment
from tests.simulation.chaos.broker_server import BrokerPort, BrokerServer
from tests.simulation.chaos.chance import now, stream
from tests.simulation.chaos.loop import SimulatedLoop, context_of
from tests.simulation.chaos.network import Wire
from tests.simulation.chaos.processes import Process, ProcessClock
from tests.simulation.chaos.provider import Call, Provider
from tests.simulation.chaos.store_server import StorePort, StoreServer

PLACES: Final = ("runner-1", "runner-2", "judge-1", "curator-1", "curator-2")
"""Where a process runs; a new one takes the place of each that ends."""

PLANNER: Final = "planner"
HEARTBEATS_MISSED: Final = 40.0
"""Seconds of silence after which the broker ends the connection of a frozen process."""

LEASES_LOST: Final = 12.0
"""Seconds of silence after which another runner may take a runner's leases over."""

LOOK_SECONDS: Final = 5.0
MOST_RETURNS: Final = 2 * SUSPECT_AFTER - 1
NANODOLLARS: Final = 10**9


@dataclass(slots=True, eq=False)
class World:
    """Everything that a fault may break, and all that an invariant may look at."""

    seed: int
    shape: int
    pace: Pace
    is_harmless: bool
    """Whether no fault loses a message or keeps somebody away for long."""

    trace: list[str] | None = None
    """What happened, line by line; None: nobody reads it."""

    experiment: Experiment = field(init=False)
    broker: BrokerServer = field(init=False)
    store: StoreServer = field(init=False)
    provider: Provider = field(init=False)
    processes: dict[str, Process] = field(default_factory=dict)
    """The present process of each place."""

    all_processes: list[Process] = field(default_factory=list)
    poison: list[str] = field(default_factory=list)
    """The ids of messages that have to become dead letters."""

    completions: list[Message] = field(default_factory=list)
    """The announcements of the experiment's end."""

    stops: int = 0
    """Faults in force under which a person keeps the experiment stopped."""

    broken: list[str] = field(default_factory=list)
    """What contradicted an invariant while the run went on."""

    left_leases: bool = False
    """Whether a process may have left leases behind, with the money that they reserved."""

    writable_again: list[float] = field(default_factory=list)
    """The times at which a store that took nothing takes facts again."""

    had_full_queues: bool = False
    """Whether publishers waited for room."""

    strange_errors: int = 0
    """How many have been, and will be."""

    budget_cut: int = 0
    """Faults in force under which the experiment has less money than it needs."""

    completed_at: float | None = None
    """When the store had it as complete, in virtual seconds."""

    calm_since: float = 0.0
    """When the last fault was undone."""

    _tasks: dict[str, list[asyncio.Task[Any]]] = field(default_factory=dict)
    _number: int = 0
    _returns: Counter[str] = field(default_factory=Counter)
    """How often messages in hand went back unsettled, by the kind of process."""

    _committed: int = 0
    _hearing: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self.experiment = experiment(self.shape, self.pace)

    def hear_of_task(self, process: str, task: asyncio.Task[Any]) -> None:
        self._tasks.setdefault(process, []).append(task)

    def note(self, who: str, what: str) -> None:
        """Add a line to the trace."""
        if self.trace is not None:
            self.trace.append(f"{now():12.6f}  {who}: {what}")

    async def begin(self) -> None:
        """Start the servers and all processes, and plan the experiment."""
        noted = self._noted
        self.broker = BrokerServer(stream(self.seed, "broker"))
        await self.broker.declare(WORK_QUEUES, BROADCASTS)
        self.store = StoreServer(MemoryStore(now=ProcessClock().now))
        self.store.on_write = self._check_money
        self.provider = Provider(stream(self.seed, "provider"), self.pace, note=noted)
        self._hearing = asyncio.create_task(self._hear_completions())
        for place in PLACES:
            self.start(place)
        self.start_planner()

    @property
    def _noted(self) -> Callable[[str, str], None] | None:
        return None if self.trace is None else self.note

    # Processes

    def start(self, place: str) -> Process:
        """Start a process at a place."""
        process = self._new(place)
        process.main = self._spawn(process, process.run())
        return process

    def start_planner(self) -> None:
        """Register and request the experiment, as the command does; a person repeats it."""
        process = self._new(PLANNER)
        process.main = self._spawn(process, self._plan(process))

    def _new(self, place: str) -> Process:
        self._number += 1
        name = f"{place}.{self._number}"
        chance, noted = stream(self.seed, name), self._noted
        self.processes[place] = process = Process(
            name=name,
            kind=place.partition("-")[0],
            broker=BrokerPort(self.broker, name, Wire(name, "broker", chance, noted), chance),
            store=StorePort(self.store, name, Wire(name, "store", chance, noted)),
            provider=self.provider,
            clock=ProcessClock(),
            chance=chance,
            on_given_up=self.excuse,
        )
        self.all_processes.append(process)
        self.note(name, "starts")
        return process

    def kill(self, place: str) -> bool:
        """End a process at once: nothing of it reaches a server any more.

        False if there is none, or if enough were killed.
        """
        process = self.processes[place]
        if not process.is_alive or not self._may_return_messages(process):
            return False
        self.note(process.name, "is killed")
        self.excuse(process, "a kill")
        process.broker.wire.cut()
        process.store.wire.cut()
        self.broker.end_consumers([process.name], "its process was killed")
        self.loop.thaw(process.name)
        for task in list(self._tasks[process.name]):
            task.cancel()
        return True

    def disconnect(self, processes: Iterable[Process], why: str) -> None:
        """End the connections of processes to the broker: their messages go back."""
        names = [each.name for each in processes if self._may_return_messages(each)]
        self.broker.end_consumers(names, why)

    def _may_return_messages(self, process: Process) -> bool:
        """Count that the messages in its hand go back unsettled, unless they did too often.

        After ten times the broker rightly takes a message for the one that ends its consumers.
        """
        if self._returns[process.kind] >= MOST_RETURNS:
            return False
        self._returns[process.kind] += 1
        return True

    def freeze(self, place: str) -> Process:
        """Stop a process like SIGSTOP."""
        process = self.processes[place]
        self.note(process.name, "freezes")
        process.is_frozen = True
        self.loop.freeze(process.name)
        return process

    def thaw(self, process: Process) -> None:
        """Have a frozen process go on."""
        self.note(process.name, "goes on")
        process.is_frozen = False
        self.loop.thaw(process.name)

    async def replace(self, place: str) -> None:
        """Drain a process and start another in its place at the same time."""
        leaving = self.processes[place]
        self.note(leaving.name, "drains")
        # It cannot give back a lease whose grant got lost: the reservation stays committed.
        self.left_leases |= bool(self.store.loses_answers)
        leaving.drain()
        self.start(place)
        if leaving.main is not None:
            await asyncio.wait([leaving.main])

    def calls_in_hand(self, process: Process) -> list[Call]:
        """Return the paid calls of a process whose turn has no stored response."""
        stored = self.store.store._state.responses
        return [
            call
            for call in self.provider.calls
            if call.process == process.name and call.turn[1] not in stored.get(call.turn[0], {})
        ]

    def excuse(self, process: Process, why: str) -> None:
        """Note that the turns of a process's calls in flight may be paid once more."""
        self.left_leases = True
        self.provider.excuse(self.calls_in_hand(process), why)

    @property
    def loop(self) -> SimulatedLoop:
        loop: SimulatedLoop = asyncio.get_running_loop()  # type: ignore[assignment]
        return loop

    def _spawn(self, process: Process, work: Any) -> asyncio.Task[None]:
        task = self.loop.create_task(work, context=context_of(process.name))
        task.add_done_callback(partial(self._ended, process))
        return task

    def _ended(self, process: Process, task: asyncio.Task[None]) -> None:
        self.note(process.name, "ends")
        if not task.cancelled() and (error := task.exception()) is not None:
            process.gave_up = repr(error)
            self.broken.append(f"{process.name} ended by itself: {_causes(error)}")

    async def _plan(self, process: Process) -> None:
        store, broker = process.store.as_store(), process.broker

        async def publish(events: Sequence[Event]) -> None:
            # One by one: a kill in between leaves half a plan.
            for event in events:
                await broker.publish([to_message(event)])

        while True:
            try:
                registered = await store.register(self.experiment)
                await resume(registered, None, store, publish, clock=process.clock)
            except (StoreError, BrokerError) as error:
                self.note(process.name, f"cannot plan now: {error}")
                await asyncio.sleep(20.0)
            else:
                return

    # The operator

    async def change_state(self, to: ExperimentState) -> None:
        """Pause, cancel or resume the experiment, as soon as it is registered and reachable."""
        if self.experiment_id in self.store.store._state.experiments:
            self.note("operator", f"has the experiment {to}")
            await self.store.store.change_state(self.experiment_id, to)

    async def set_budget(self, factor: int) -> None:
        """Register the experiment with a part of its money, 1 over `factor`, or with all of it."""
        manifest = self.experiment.manifest
        if manifest.budget is None:
            return
        budget = manifest.budget / factor
        self.note("operator", f"sets the budget to {budget} USD")
        changed = manifest.model_copy(update={"budget": budget})
        with suppress(StoreError):
            await self.store.store.register(
                self.experiment.model_copy(update={"manifest": changed})
            )

    @property
    def experiment_id(self) -> str:
        return self.experiment.experiment_id

    async def repair(self) -> None:
        """Have one process at each place again, all the money, and the experiment registered."""
        await self.set_budget(1)
        for place in PLACES:
            if not self.processes[place].is_alive:
                self.start(place)
        is_registered = self.experiment_id in self.store.store._state.experiments
        if not is_registered and not self.processes[PLANNER].is_alive:
            self.start_planner()
        self.calm_since = now()
        self.note("operator", "has repaired everything")

    async def until_complete(self, seconds: float) -> None:
        """Wait until the store has the experiment as complete, for at most so long."""
        deadline = now() + seconds
        while now() < deadline:
            await self._raise_budget()
            stored = self.store.store._state.experiments.get(self.experiment_id)
            if stored is not None and stored.completed_at is not None:
                self.completed_at = now()
                self.note("world", "the experiment is complete")
                return
            await asyncio.sleep(LOOK_SECONDS)

    async def _raise_budget(self) -> None:
        """Give more money where kills or lapsed leases have cost so much that no call can begin."""
        account = self.store.store._state.account_of(self.experiment_id)
        is_short = account.left is not None and account.left < MOST_A_CALL
        if account.exhausted and (is_short or self.left_leases):
            manifest = self.experiment.manifest
            self.is_harmless = False  # the runs that ended without money are requested again
            more = (manifest.budget or 0) + Decimal(20 * MOST_A_CALL) / NANODOLLARS
            changed = manifest.model_copy(update={"budget": more})
            self.experiment = self.experiment.model_copy(update={"manifest": changed})
            await self.set_budget(1)

    def _check_money(self, request: str) -> None:
        """Note a lease whose reservation did not fit into the budget."""
        account = self.store.store._state.account_of(self.experiment_id)
        more = account.committed - self._committed
        self._committed = account.committed
        if request == "take_leases" and more > 0 and (account.left or 0) < 0:
            self.broken.append(f"leases were granted with {account.left} nanodollars left")

    async def end(self) -> None:
        """Stop every process in an orderly way."""
        for process in self.all_processes:
            process.drain()
        mains = [each.main for each in self.all_processes if each.main is not None]
        await asyncio.wait(mains, timeout=600.0)

    def left_tasks(self) -> list[str]:
        """Return the names of processes' tasks that have not ended."""
        return [
            f"{process}: {task.get_coro()}"
            for process, tasks in self._tasks.items()
            if process
            for task in tasks
            if not task.done()
        ]

    async def dead_letters(self) -> list[DeadLetter]:
        return [
            letter
            for queue in WORK_QUEUES
            for letter in await self.broker.dead_letters(queue.name, 1_000)
        ]

    async def _hear_completions(self) -> None:
        async with self.broker.listen(BROADCASTS[1]) as listener:
            async for message in listener:
                self.completions.append(message)


def _causes(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_causes(each) for each in error.exceptions)
    return f"{type(error).__name__}: {error}"
