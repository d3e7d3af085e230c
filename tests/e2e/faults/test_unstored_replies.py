"""A reply that no store takes is paid for once, though its turn is requested at a second runner."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import pytest
from aiohttp import web

from socratic_bench.addresses import open_broker, open_store
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.events.message import to_message
from socratic_bench.events.run_requested import RunRequested
from socratic_bench.ports.stores.leases import CallCount
from socratic_bench.ports.stores.store import Store
from tests.e2e.command import Terminal
from tests.e2e.experiments import completed, submitted
from tests.e2e.service_processes import ServiceProcess, all_ready, started
from tests.integration.dynamodb.faulty_gateway import API, FaultyGateway, serving
from tests.servers import aws_emulator, dynamodb, postgresql, rabbitmq
from tests.servers.providers.endpoint import Endpoint, endpoint
from tests.servers.proxy import Proxy, proxy
from tests.waiting import until

pytestmark = [pytest.mark.connected, pytest.mark.long]

RUNS = 15
CALL_SECONDS = 45.0
"""Long enough to start another runner in."""

SHORT_SECONDS = 10.0
MARGIN_SECONDS = 1.0
SETTINGS = {
    "SOCRATIC_RUNNER_LEASE_MARGIN": f"{MARGIN_SECONDS:g}",
    "SOCRATIC_RUNNER_BUSY_DELAY": "0.5",
    "SOCRATIC_RUNNER_IN_FLIGHT_PER_MODEL": f"{RUNS}",
    "SOCRATIC_RUNNER_IN_FLIGHT": f"{RUNS}",
    # The reconciler must not request the runs a third time.
    "SOCRATIC_CURATOR_QUIET": "600",
}


@dataclass
class WayToStore:
    """One runner's way to the store, which a test can close."""

    url: str
    go_away: Callable[[], Awaitable[object]]
    come_back: Callable[[], Awaitable[object]]


@dataclass
class BreakableStore:
    """A store, and the ways of two runners to it."""

    url: str
    first: WayToStore
    second: WayToStore
    without_outcomes: Callable[[], AbstractAsyncContextManager[object]]
    """While this context is open, the first runner can store heartbeats, and no outcomes."""

    environment: dict[str, str] = field(default_factory=dict)


class StoreGateway(FaultyGateway):
    """Takes no transactions, or nothing at all, while a test wants that."""

    def __init__(self, server: str) -> None:
        super().__init__(server, 0.0, 0)
        self.is_away = False
        self.refuses_transactions = False

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if self.is_away:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if self.refuses_transactions and "TransactWrite" in request.headers["X-Amz-Target"]:
            error = f"{API}ProvisionedThroughputExceededException"
            return web.json_response({"__type": error, "message": "slow down"}, status=400)
        return await super().handle(request)

    @asynccontextmanager
    async def without_transactions(self) -> AsyncIterator[None]:
        self.refuses_transactions = True
        yield
        self.refuses_transactions = False


@asynccontextmanager
async def breakable_postgresql() -> AsyncIterator[BreakableStore]:
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(postgresql.prepared_database())
        host, port = urlsplit(url).hostname or "127.0.0.1", urlsplit(url).port or 5432

        async def way() -> WayToStore:
            between: Proxy = await stack.enter_async_context(proxy(host, port))
            parts = urlsplit(url)
            user = f"{parts.username}@" if parts.username else ""
            there = parts._replace(netloc=f"{user}127.0.0.1:{between.port}").geturl()
            return WayToStore(there, between.stop, between.start)

        @asynccontextmanager
        async def without_outcomes() -> AsyncIterator[None]:
            async with postgresql.connected(url) as locking, locking.transaction():
                await locking.execute("LOCK TABLE responses IN EXCLUSIVE MODE")
                yield

        yield BreakableStore(url, await way(), await way(), without_outcomes)


@asynccontextmanager
async def breakable_dynamodb() -> AsyncIterator[BreakableStore]:
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(dynamodb.new_table())
        store = open_store(url)
        await store.prepare()
        await store.close()
        gateways: list[StoreGateway] = []

        async def way() -> WayToStore:
            server = StoreGateway(aws_emulator.SERVER.address())
            gateway = await stack.enter_async_context(serving(server))
            gateways.append(gateway)
            address, _, options = url.partition("?")
            through = {**dict(parse_qsl(options)), "endpoint": gateway.url}

            async def set_away(is_away: bool) -> None:
                gateway.is_away = is_away

            return WayToStore(
                f"{address}?{urlencode(through, quote_via=quote)}",
                lambda: set_away(True),
                lambda: set_away(False),
            )

        first, second = await way(), await way()
        yield BreakableStore(
            url, first, second, gateways[0].without_transactions, aws_emulator.credentials()
        )


@pytest.fixture(params=[breakable_postgresql, breakable_dynamodb], ids=["postgresql", "dynamodb"])
async def broken(request: pytest.FixtureRequest) -> AsyncIterator[BreakableStore]:
    async with request.param() as store:
        yield store


@dataclass
class TwoRunners:
    """Two runners, the first with all runs in hand, the second with a request of each."""

    model: Endpoint
    store: Store
    experiment_id: str
    first: ServiceProcess
    second: ServiceProcess
    leases_end: float

    async def second_was_refused(self, *, after: float = 0.0) -> None:
        """Wait until the second runner was refused a lease after a time of the loop, or called."""
        at_first: float | None = None

        async def refused() -> bool:
            nonlocal at_first
            held = await self.second.metric("socratic_lease_answers_total", answer="held")
            if asyncio.get_running_loop().time() > after and at_first is None:
                at_first = held
            is_refused = at_first is not None and held > at_first
            return is_refused or max(self.model.calls_of_a_turn.values()) > 1

        await until(refused, bool, "the second runner to be refused a lease")
        assert set(self.model.calls_of_a_turn.values()) == {1}

    async def ends(self) -> None:
        """Every turn was called for once, and has its response."""
        await completed(self.store, self.experiment_id)
        assert self.model.calls_of_a_turn.total() == RUNS
        assert await self.store.calls(self.experiment_id) == CallCount(RUNS, RUNS)


async def fill(model: Endpoint) -> None:
    """Wait until as many calls are under way as a runner makes after the first answer."""
    await model.until_asked(1)
    await model.answer_next(1)
    await model.until_asked(9)


@asynccontextmanager
async def two_runners(broken: BreakableStore, terminal: Terminal) -> AsyncIterator[TwoRunners]:
    """Calls under way at the first runner, one answered, and all runs requested again."""
    async with AsyncExitStack() as stack:
        environment = terminal.environment
        store = open_store(broken.url)
        stack.push_async_callback(store.close)
        broker = open_broker(environment["SOCRATIC_BROKER_URL"])
        stack.push_async_callback(broker.close)
        await broker.declare(WORK_QUEUES, BROADCASTS)
        model = await stack.enter_async_context(endpoint())
        model.hold()
        await stack.enter_async_context(all_ready(environment, "judge", "curator"))
        at_first = {**environment, "SOCRATIC_STORE_URL": broken.first.url}
        first = await stack.enter_async_context(started("runner", at_first))
        await first.ready()
        config = model.config(repeats=1, timeout_seconds=CALL_SECONDS)
        experiment_id = await submitted(terminal, config)
        await fill(model)
        asked_at = asyncio.get_running_loop().time()
        at_second = {**environment, "SOCRATIC_STORE_URL": broken.second.url}
        second = await stack.enter_async_context(started("runner", at_second))
        await second.ready()
        experiment = await store.experiment(experiment_id)
        assert experiment is not None
        now = datetime.now(UTC)
        await broker.publish(
            [to_message(RunRequested.of(run, source="test", time=now)) for run in experiment.runs()]
        )
        leases_end = asked_at + CALL_SECONDS + MARGIN_SECONDS
        yield TwoRunners(model, store, experiment_id, first, second, leases_end)


@pytest.fixture
async def terminal(tmp_path, broken) -> AsyncIterator[Terminal]:
    async with rabbitmq.namespace() as broker:
        addresses = {"SOCRATIC_BROKER_URL": broker, "SOCRATIC_STORE_URL": broken.url}
        yield Terminal(tmp_path, {**addresses, **broken.environment, **SETTINGS})


async def test_a_lease_outlasts_its_time_while_its_runner_cannot_store_the_reply(
    broken: BreakableStore, terminal: Terminal
) -> None:
    async with two_runners(broken, terminal) as both:
        async with broken.without_outcomes():
            await both.model.release()
            await both.second_was_refused(after=both.leases_end)
        await both.ends()


async def test_after_an_outage_nobody_is_taken_for_dead_who_could_not_be_heard(
    broken: BreakableStore, terminal: Terminal
) -> None:
    async with two_runners(broken, terminal) as both:
        await both.second_was_refused()
        await broken.first.go_away()
        await broken.second.go_away()
        await both.model.release()
        # Longer than a silent runner is alive.
        await asyncio.sleep(20)
        await broken.second.come_back()
        now = asyncio.get_running_loop().time()
        await both.second_was_refused(after=now)
        await broken.first.come_back()
        await both.ends()


async def test_replies_that_came_while_their_runner_was_frozen_are_stored(tmp_path) -> None:
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(postgresql.prepared_database())
        namespace = await stack.enter_async_context(rabbitmq.namespace())
        model = await stack.enter_async_context(endpoint())
        addresses = {"SOCRATIC_BROKER_URL": namespace, "SOCRATIC_STORE_URL": url}
        terminal = Terminal(tmp_path, {**addresses, **SETTINGS})
        kinds = ("runner", "judge", "curator")
        services = await stack.enter_async_context(all_ready(terminal.environment, *kinds))
        model.hold()
        config = model.config(repeats=1, timeout_seconds=SHORT_SECONDS)
        experiment_id = await submitted(terminal, config)
        await fill(model)
        services["runner"].send_signal(signal.SIGSTOP)
        await model.release()
        # Beyond the deadlines of the calls, and of their leases.
        await asyncio.sleep(SHORT_SECONDS + 3 * MARGIN_SECONDS)
        services["runner"].send_signal(signal.SIGCONT)
        store = open_store(url)
        stack.push_async_callback(store.close)
        await completed(store, experiment_id)
        assert model.calls_of_a_turn.total() == RUNS
