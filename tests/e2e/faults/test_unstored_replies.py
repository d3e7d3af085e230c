"""A reply that no store takes is paid for once, though its turn is requested at a second runner."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from socratic_bench.addresses import open_broker, open_store
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.events.codec import to_message
from socratic_bench.events.event_types import RunRequested
from socratic_bench.ports.stores.leases import CallCount
from socratic_bench.ports.stores.store import Store
from tests.e2e.command import Terminal
from tests.e2e.experiments import completed, submitted
from tests.e2e.service_processes import ServiceProcess, all_ready, started
from tests.servers import postgresql, rabbitmq
from tests.servers.providers.endpoint import Endpoint, endpoint
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


@asynccontextmanager
async def without_outcomes(url: str) -> AsyncIterator[None]:
    """A database that takes heartbeats, and no responses."""
    async with postgresql.connected(url) as locking, locking.transaction():
        await locking.execute("LOCK TABLE responses IN EXCLUSIVE MODE")
        yield


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
async def two_runners(terminal: Terminal) -> AsyncIterator[TwoRunners]:
    """Calls under way at the first runner, one answered, and all runs requested again."""
    async with AsyncExitStack() as stack:
        environment = terminal.environment
        store = open_store(environment["SOCRATIC_STORE_URL"])
        stack.push_async_callback(store.close)
        broker = open_broker(environment["SOCRATIC_BROKER_URL"])
        stack.push_async_callback(broker.close)
        await broker.declare(WORK_QUEUES, BROADCASTS)
        model = await stack.enter_async_context(endpoint())
        model.hold()
        await stack.enter_async_context(all_ready(environment, "judge", "curator"))
        first = await stack.enter_async_context(started("runner", environment))
        await first.ready()
        config = model.config(repeats=1, timeout_seconds=CALL_SECONDS)
        experiment_id = await submitted(terminal, config)
        await fill(model)
        asked_at = asyncio.get_running_loop().time()
        second = await stack.enter_async_context(started("runner", environment))
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
async def terminal(tmp_path) -> AsyncIterator[Terminal]:
    async with rabbitmq.namespace() as broker, postgresql.prepared_database() as store:
        addresses = {"SOCRATIC_BROKER_URL": broker, "SOCRATIC_STORE_URL": store}
        yield Terminal(tmp_path, {**addresses, **SETTINGS})


async def test_a_lease_outlasts_its_time_while_its_runner_cannot_store_the_reply(
    terminal: Terminal,
) -> None:
    async with two_runners(terminal) as both:
        async with without_outcomes(terminal.environment["SOCRATIC_STORE_URL"]):
            await both.model.release()
            await both.second_was_refused(after=both.leases_end)
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
