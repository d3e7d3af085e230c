"""Everything a benchmark runs on, all of it ours to break: servers, connections, services."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from socratic_bench.adapters.brokers.rabbitmq.broker import RabbitMQBroker
from socratic_bench.adapters.clock import SystemClock
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.ports.clock import Clock
from tests.e2e.service_processes import ServiceProcess, start
from tests.servers import rabbitmq
from tests.servers.discovery import wait_for
from tests.servers.postgresql import execute, read_only
from tests.servers.postgresql_process import PostgreSQLProcess
from tests.servers.proxy import Proxy, proxy
from tests.servers.rabbitmq_process import RabbitMQProcess

SETTINGS = {
    "SOCRATIC_RUNNER_LEASE_MARGIN": "2",
    "SOCRATIC_RUNNER_BUSY_DELAY": "1",
    "SOCRATIC_CURATOR_QUIET": "10",
    "SOCRATIC_RUNNER_FIRST_DELAY": "0.05",
    # Faulty models push back many times in a row: with pauses of a minute each, the last of their
    # runs took up to ten.
    "SOCRATIC_RUNNER_LONGEST_DELAY": "1",
    "SOCRATIC_RUNNER_IN_FLIGHT_PER_MODEL": "40",
    "SOCRATIC_START_DEADLINE": "60",
    "SOCRATIC_LOG_LEVEL": "info",
}


FREEZE_SECONDS = 17.0
"""Longer than after what time the store takes an owner for dead."""

READ_ONLY_SECONDS = 5.0

ALARM_SECONDS = 8.0

_PURGE = """
Purging = [spawn_monitor(fun() -> rabbit_amqqueue:purge(Queue) end)
           || Queue <- rabbit_amqqueue:list()],
Ends = erlang:monotonic_time(millisecond) + 20000,
[receive {'DOWN', Monitor, process, _, _} -> ok
 after max(0, Ends - erlang:monotonic_time(millisecond)) -> ok
 end || {_, Monitor} <- Purging],
done.
"""
"""Side by side, and no longer than so many milliseconds in all: a queue without a leader never
answers."""

_WATERMARK = "vm_memory_monitor:set_vm_memory_high_watermark({}), done."

LOOKS = 8
"""How often in a row nothing must be left before nothing is."""


@dataclass(slots=True)
class Stack:
    """Servers behind proxies, and the services that use them."""

    rabbitmq: RabbitMQProcess
    postgresql: PostgreSQLProcess
    to_rabbitmq: Proxy
    to_postgresql: Proxy
    broker: RabbitMQBroker
    store: SqlStore
    store_url: str
    environment: dict[str, str]
    services: dict[str, ServiceProcess] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    """The faults so far, for people to read."""

    runner_kills: int = 0
    clock: Clock = field(default_factory=SystemClock)
    _last: str = ""
    _begun: float = field(default_factory=time.monotonic)

    async def start_service(self, name: str) -> None:
        """Start a service such as `runner-1`; a killed one starts again under its name."""
        kind = name.partition("-")[0]
        self.services[name] = await start(kind, self.environment)

    async def kill_service(self, name: str) -> None:
        """SIGKILL, and a new process in its place."""
        self._break(f"kill {name}")
        self.runner_kills += name.startswith("runner")
        service = self.services[name]
        service.kill()
        assert await service.ended() == -signal.SIGKILL, service.text
        await self.start_service(name)

    async def restart_rabbitmq(self) -> None:
        """As after a power cut."""
        self._break("restart RabbitMQ")
        await asyncio.to_thread(self.rabbitmq.kill)
        self.rabbitmq.start()
        await asyncio.to_thread(wait_for, self.rabbitmq.url, rabbitmq.check)

    async def restart_postgresql(self) -> None:
        """As after a crash."""
        self._break("restart PostgreSQL")
        await asyncio.to_thread(self.postgresql.kill)
        await asyncio.to_thread(self.postgresql.start)

    async def cut_connections(self) -> None:
        """All of them."""
        self._break("cut connections")
        self.to_rabbitmq.cut()
        self.to_postgresql.cut()

    async def freeze_service(self, name: str) -> None:
        """Stop a service for longer than its leases last, and have it go on."""
        self._break(f"freeze {name}")
        self.runner_kills += name.startswith("runner")
        self.services[name].send_signal(signal.SIGSTOP)
        await asyncio.sleep(FREEZE_SECONDS)
        self.services[name].send_signal(signal.SIGCONT)

    async def make_read_only(self) -> None:
        """As during a fail-over."""
        self._break("PostgreSQL takes nothing")
        await read_only(self.store_url, is_read_only=True)
        await asyncio.sleep(READ_ONLY_SECONDS)
        await read_only(self.store_url, is_read_only=False)

    async def purge_queues(self) -> None:
        """Lose every message that waits."""
        self._break("purge all queues")
        await asyncio.to_thread(self.rabbitmq.evaluate, _PURGE)

    async def delete_queues(self) -> None:
        """Lose every queue, with every message that waits."""
        self._break("delete all queues")
        groups = {each for running in await self.store.running() for each in running.groups}
        await rabbitmq.delete(self.rabbitmq.url, WORK_QUEUES, sorted(groups))

    async def discard_broker(self) -> None:
        """Lose all that the broker has: queues, exchanges, bindings, messages."""
        self._break("discard what RabbitMQ has")
        await asyncio.to_thread(self.rabbitmq.discard)
        self.rabbitmq.start()
        await asyncio.to_thread(wait_for, self.rabbitmq.url, rabbitmq.check)

    async def raise_memory_alarm(self) -> None:
        """Have the broker take nothing."""
        self._break("memory alarm")
        await asyncio.to_thread(self.rabbitmq.evaluate, _WATERMARK.format("{absolute, 1}"))
        await asyncio.sleep(ALARM_SECONDS)
        await asyncio.to_thread(self.rabbitmq.evaluate, _WATERMARK.format("0.6"))

    async def most_calls_of_a_turn(self, *, besides: str) -> int:
        """How often a model was called for one turn, at most; not counting an archetype."""
        [row] = await execute(
            self.store_url,
            "SELECT max(calls) AS most FROM calls JOIN responses USING (run_id, turn)"
            " WHERE record NOT LIKE $1",
            f"%reference/{besides}%",
        )
        return int(row["most"])

    async def until_queues_are_empty(self) -> None:
        """Wait until everything, second deliveries too, is settled."""
        empty = 0
        while empty < LOOKS:
            depths = [await self.broker.depth(queue.name) or 0 for queue in WORK_QUEUES]
            in_flight = [await _in_flight(service) for service in self.services.values()]
            empty = 0 if any(depths) or any(in_flight) else empty + 1
            self.note(f"{sum(depths)} messages wait, {sum(in_flight):.0f} are in flight")
            await asyncio.sleep(0.2)

    async def end_services(self) -> dict[str, int]:
        """Tell all to stop; returns their exit codes."""
        for service in self.services.values():
            service.terminate()
        return {name: await service.ended() for name, service in self.services.items()}

    def _break(self, what: str) -> None:
        self.broken.append(what)
        self.note(what)

    def raise_if_a_service_gave_up(self) -> None:
        for name, service in self.services.items():
            assert service.running, f"{name} has ended by itself: {service.text}"

    def note(self, what: str) -> None:
        if what != self._last:
            print(f"{time.monotonic() - self._begun:6.1f} s  {what}", flush=True)
        self._last = what

    def story(self) -> str:
        """The accidents so far and the last progress, for the report of a failure."""
        return "\n".join([", ".join(self.broken), self._last])

    async def what_is_left(self, experiment: Experiment) -> str:
        """The runs that are not done, by model, their state, and the queues' depths."""
        planned = list(experiment.runs())
        ids = [run.run_id for run in planned]
        done = await self.store.done_runs(experiment.experiment_id, ids)
        left = [run for run in planned if run.run_id not in done]
        runs = [run.run_id for run in left]
        counts = {
            "left": Counter(run.model_id for run in left),
            "answered": len(await self.store.responses(runs)),
            "failed": len(await self.store.recorded_failures(runs)),
            "in hand": await self.store.models_in_hand(experiment.experiment_id),
            "troubles": await self.store.troubles(experiment.experiment_id),
            "wait": {each.name: await self.broker.depth(each.name) for each in WORK_QUEUES},
            "in flight": {
                name: await _in_flight(service) for name, service in self.services.items()
            },
            "problems": await self.broker.inspect(WORK_QUEUES),
        }
        return "\n".join(f"{what}: {count}" for what, count in counts.items())

    def accidents(self, chance: random.Random) -> Callable[[str], Awaitable[None]]:
        """Return the function that makes an accident of a kind happen."""
        kinds = {
            "rabbitmq": self.restart_rabbitmq,
            "postgresql": self.restart_postgresql,
            "connections": self.cut_connections,
            "read-only": self.make_read_only,
            "purge": self.purge_queues,
            "delete": self.delete_queues,
            "discard": self.discard_broker,
            "alarm": self.raise_memory_alarm,
        }

        def happen(kind: str) -> Awaitable[None]:
            if kind in kinds:
                return kinds[kind]()
            if kind == "freeze":
                return self.freeze_service(chance.choice(list(self.services)))
            victims = [name for name in self.services if name.startswith(kind)]
            return self.kill_service(chance.choice(victims))

        return happen


@asynccontextmanager
async def stack(*services: str) -> AsyncIterator[Stack]:
    """A stack with these services, `runner-1` and so on; everything is gone afterwards."""
    async with AsyncExitStack() as ending:
        # Not in a test's folder: a server may run as a user who may not go there.
        folders = [Path(ending.enter_context(TemporaryDirectory())) for _ in range(2)]
        queueing = RabbitMQProcess(folders[0])
        ending.callback(queueing.kill)
        queueing.start()
        database = await asyncio.to_thread(PostgreSQLProcess, folders[1])
        await asyncio.to_thread(database.start)
        ending.callback(database.kill)
        await asyncio.to_thread(wait_for, queueing.url, rabbitmq.check)
        to_rabbitmq = await ending.enter_async_context(_in_front_of(queueing.url))
        to_postgresql = await ending.enter_async_context(_in_front_of(database.url))
        broker_url = f"amqp://guest:guest@127.0.0.1:{to_rabbitmq.port}/"
        store_url = f"postgresql://postgres@127.0.0.1:{to_postgresql.port}/benchmark"
        broker, store = RabbitMQBroker(broker_url), SqlStore.from_url(store_url)
        ending.push_async_callback(store.close)
        ending.push_async_callback(broker.close)
        await store.prepare()
        await broker.declare(WORK_QUEUES, BROADCASTS)
        environment = {
            **SETTINGS,
            "SOCRATIC_BROKER_URL": broker_url,
            "SOCRATIC_STORE_URL": store_url,
        }
        all_of_it = Stack(
            queueing,
            database,
            to_rabbitmq,
            to_postgresql,
            broker,
            store,
            f"{database.url}/benchmark",
            environment,
        )
        ending.push_async_callback(_end_all, all_of_it)
        for name in services:
            await all_of_it.start_service(name)
        yield all_of_it


def _in_front_of(url: str) -> AbstractAsyncContextManager[Proxy]:
    address = urlsplit(url)
    return proxy(address.hostname or "", address.port or 0)


async def _end_all(all_of_it: Stack) -> None:
    await asyncio.gather(*(service.close() for service in all_of_it.services.values()))


async def _in_flight(service: ServiceProcess) -> float:
    """Messages that a service has in hand."""
    metrics = (await service.get("/metrics")).text.splitlines()
    return sum(
        float(line.rpartition(" ")[2])
        for line in metrics
        if line.startswith("socratic_messages_in_flight{")
    )
