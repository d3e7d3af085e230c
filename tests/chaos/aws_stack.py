"""A benchmark on SQS and DynamoDB, all of it ours to break: AWS, its connections, services."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

from socratic_bench.adapters.brokers.sqs.broker import SqsBroker
from socratic_bench.adapters.stores.dynamodb import keys
from socratic_bench.adapters.stores.dynamodb.clients import aws_session, parse
from socratic_bench.adapters.stores.dynamodb.store import DynamoDBStore
from socratic_bench.adapters.stores.dynamodb.table import DynamoTable
from socratic_bench.adapters.stores.dynamodb.turns import pending_turns
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.ports.stores.responses import TurnKey
from tests.chaos.aws_gateway import AwsGateway, aws_gateway
from tests.chaos.counting_runner import CALLS_FILE
from tests.chaos.stack import FREEZE_SECONDS, SETTINGS
from tests.e2e.service_processes import ServiceProcess, start
from tests.servers import aws_emulator, dynamodb, sqs

FAULTY_PART = 0.02
"""The part of all requests to AWS that is throttled, or whose question or answer is lost."""

AWAY_SECONDS = 4.0

# With two seconds, leases of living runners lapsed while their replies waited for the table.
AWS_SETTINGS = {**SETTINGS, "SOCRATIC_RUNNER_LEASE_MARGIN": "30"}


@dataclass(slots=True)
class AwsStack:
    """An emulator behind a gateway, and the services that use it."""

    gateway: AwsGateway
    broker: SqsBroker
    store: DynamoDBStore
    table: DynamoTable
    environment: dict[str, str]
    services: dict[str, ServiceProcess] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    """The faults so far, for people to read."""

    in_flight: set[tuple[int, TurnKey]] = field(default_factory=set)
    """The calls that killed and frozen runners had in flight, by process id: the turns that each
    held a lease of and had stored no response to."""

    stops: int = 0
    """How many runners were killed or frozen."""

    _begun: float = field(default_factory=time.monotonic)

    async def start_service(self, name: str) -> None:
        """Start a service such as `runner-1`; a killed one starts again under its name."""
        kind = name.partition("-")[0]
        module = "tests.chaos.counting_runner" if kind == "runner" else None
        self.services[name] = await start(kind, self.environment, module)

    async def kill_service(self, name: str, experiment_id: str) -> None:
        """SIGKILL, and a new process in its place."""
        self._break(f"kill {name}")
        service = self.services[name]
        service.kill()
        assert await service.ended() == -signal.SIGKILL, service.text
        await self._count_calls_of(service, experiment_id)
        await self.start_service(name)

    async def freeze_service(self, name: str, experiment_id: str) -> None:
        """Stop a service for longer than the store counts it as alive, and have it go on."""
        self._break(f"freeze {name}")
        service = self.services[name]
        service.send_signal(signal.SIGSTOP)
        await self._count_calls_of(service, experiment_id)
        await asyncio.sleep(FREEZE_SECONDS)
        service.send_signal(signal.SIGCONT)

    async def cut_connections(self) -> None:
        """All of them, in the middle of their requests."""
        self._break("cut connections")
        self.gateway.cut()

    async def go_away(self) -> None:
        """Have all of AWS answer nobody for some seconds."""
        self._break("AWS is away")
        self.gateway.is_away = True
        self.gateway.cut()
        await asyncio.sleep(AWAY_SECONDS)
        self.gateway.is_away = False

    async def purge_queues(self) -> None:
        """Lose every message, those in hand too."""
        self._break("purge all queues")
        for queue in WORK_QUEUES:
            url = await self.broker_call("get_queue_url", QueueName=self._named(queue.name))
            await self.broker_call("purge_queue", QueueUrl=url["QueueUrl"])

    async def broker_call(self, operation: str, **request: str) -> dict[str, str]:
        """Ask SQS past the gateway."""
        async with aws_session().create_client(
            "sqs", endpoint_url=aws_emulator.SERVER.address(), region_name=aws_emulator.REGION
        ) as client:
            answer: dict[str, str] = await getattr(client, operation)(**request)
        return answer

    async def calls_in_the_store(self, turns: list[TurnKey]) -> dict[TurnKey, int]:
        """How many calls the store has counted for each of these turns."""
        found = await self.table.get(keys.turn(*turn) for turn in turns)
        return {turn: int(found[keys.turn(*turn)].get("calls", 0)) for turn in turns}

    def accidents(
        self, chance: random.Random, experiment_id: str
    ) -> Callable[[str], Awaitable[None]]:
        """Return the function that makes an accident of a kind happen."""
        kinds = {
            "connections": self.cut_connections,
            "away": self.go_away,
            "purge": self.purge_queues,
        }

        def happen(kind: str) -> Awaitable[None]:
            if kind in kinds:
                return kinds[kind]()
            if kind == "freeze":
                return self.freeze_service(self._one_of("runner", chance), experiment_id)
            return self.kill_service(self._one_of(kind, chance), experiment_id)

        return happen

    def raise_if_a_service_gave_up(self) -> None:
        """Fail if a service has ended by itself."""
        for name, service in self.services.items():
            assert service.running, f"{name} has ended by itself: {service.text}"

    async def end_services(self) -> dict[str, int]:
        """Tell all to stop; returns their exit codes."""
        for service in self.services.values():
            service.terminate()
        return {name: await service.ended() for name, service in self.services.items()}

    async def _count_calls_of(self, service: ServiceProcess, experiment_id: str) -> None:
        """Count the calls that a stopped runner had in flight."""
        if service.kind != "runner":
            return
        await self.gateway.settled()
        self.stops += 1
        self.in_flight |= {
            (service.pid, turn.key)
            for turn in await pending_turns(self.table, experiment_id)
            if f"-{service.pid}-" in turn.calls.owner
            and turn.calls.lease_id
            and not turn.is_answered
        }

    def _one_of(self, kind: str, chance: random.Random) -> str:
        return chance.choice([name for name in self.services if name.startswith(kind)])

    def _named(self, queue: str) -> str:
        url = self.environment["SOCRATIC_BROKER_URL"]
        return f"{url.partition('?')[0].rpartition('/')[2]}-{queue}"

    def _break(self, what: str) -> None:
        self.broken.append(what)
        print(f"{time.monotonic() - self._begun:6.1f} s  {what}", flush=True)


@asynccontextmanager
async def aws_stack(seed: int, calls_file: Path, *services: str) -> AsyncIterator[AwsStack]:
    """A stack with these services, `runner-1` and so on; everything is gone afterwards."""
    async with AsyncExitStack() as ending:
        store_url = await ending.enter_async_context(dynamodb.new_table())
        broker_url = await ending.enter_async_context(sqs.namespace())
        emulator = aws_emulator.SERVER.address()
        gateway = await ending.enter_async_context(aws_gateway(emulator, FAULTY_PART, seed))
        broker, store = SqsBroker(broker_url), DynamoDBStore.from_url(store_url)
        ending.push_async_callback(store.close)
        ending.push_async_callback(broker.close)
        await store.prepare()
        await broker.declare(WORK_QUEUES, BROADCASTS)
        table = DynamoTable(parse(store_url))
        ending.push_async_callback(table.close)
        environment = {
            **AWS_SETTINGS,
            **aws_emulator.credentials(),
            "SOCRATIC_BROKER_URL": _through(gateway.url, broker_url),
            "SOCRATIC_STORE_URL": _through(gateway.url, store_url),
            CALLS_FILE: str(calls_file),
        }
        whole = AwsStack(gateway, broker, store, table, environment)
        ending.push_async_callback(_end_all, whole)
        for name in services:
            await whole.start_service(name)
        yield whole


def _through(gateway: str, url: str) -> str:
    address, _, options = url.partition("?")
    return f"{address}?{urlencode({**dict(parse_qsl(options)), 'endpoint': gateway})}"


async def _end_all(whole: AwsStack) -> None:
    whole.gateway.is_away = False
    await asyncio.gather(*(service.close() for service in whole.services.values()))
