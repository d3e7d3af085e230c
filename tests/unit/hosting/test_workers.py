"""A process of workers: ready when it can work, drained at a signal, ended when broken."""

import asyncio
from contextlib import asynccontextmanager, nullcontext

import httpx
import pytest
from pydantic import SecretStr

from socratic_bench.adapters.brokers.memory.broker import MemoryBroker
from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.consuming.dispatch import BatchDispatcher, Dispatcher
from socratic_bench.consuming.outcomes import Handled, Rejected
from socratic_bench.consuming.queues import JUDGE_RESPONSE_RECORDED
from socratic_bench.consuming.worker import Intake, Worker
from socratic_bench.errors import (
    BrokerError,
    BrokerUnavailable,
    InvalidSettings,
    StoreBroken,
    StoreNotWritable,
    StoreUnavailable,
)
from socratic_bench.events.codec import to_message
from socratic_bench.events.event_types import ResponseRecorded
from socratic_bench.hosting.starting import CannotStart, first_cause
from socratic_bench.hosting.workers import host_workers
from socratic_bench.service_settings import WorkerProcessSettings
from tests.unit.events.examples import example_events
from tests.waiting import PATIENCE, until, waiting_for

QUEUE = JUDGE_RESPONSE_RECORDED
MESSAGE = to_message(example_events()["response.recorded"])


@pytest.fixture
async def broker():
    broker = MemoryBroker()
    yield broker
    await broker.close()


@pytest.fixture
async def store():
    store = MemoryStore()
    yield store
    await store.close()


class Hosted:
    """Workers hosted in this process, with one handler."""

    def __init__(self, broker, store, handler, log, **settings) -> None:
        self._handler = handler
        self._broker = broker
        self._log = log
        self.stop = asyncio.Event()
        given = {"drain_deadline": 5, "start_deadline": 5, **settings}
        self.running = asyncio.create_task(
            host_workers(
                WorkerProcessSettings(broker_url=SecretStr("memory://"), health_port=0, **given),
                broker,
                store,
                self._workers,
                self.stop,
            )
        )

    async def get(self, path):
        address = (await self._log.until("serving"))["address"]
        async with httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client:
            return await client.get(path)

    @asynccontextmanager
    async def _workers(self, observer, _metrics):
        dispatcher = BatchDispatcher(
            self._broker.publish, Dispatcher(self._handler, ResponseRecorded)
        )
        yield [Worker(self._broker, QUEUE, dispatcher, Intake(longest_pause=0), observer=observer)]

    async def metrics(self):
        return (await self.get("/metrics")).text

    async def end(self):
        self.stop.set()
        async with waiting_for("the end of the service"):
            await self.running


async def handles(batch):
    yield [Handled(work) for work in batch]


async def test_it_declares_only_the_queues_and_broadcasts_of_its_service(broker, log, monkeypatch):
    declared = []

    async def declare(queues, broadcasts):
        declared.extend((*(queue.name for queue in queues), *broadcasts))
        raise InvalidSettings("enough")

    monkeypatch.setattr(broker, "declare", declare)
    with pytest.raises(ExceptionGroup) as raised:
        await host_workers(
            WorkerProcessSettings(broker_url=SecretStr("memory://"), health_port=0),
            broker,
            None,
            lambda *_: nullcontext(()),
            asyncio.Event(),
            queues=[JUDGE_RESPONSE_RECORDED],
            broadcasts=["something.happened"],
        )
    assert raised.group_contains(InvalidSettings, match="enough")
    assert declared == [JUDGE_RESPONSE_RECORDED.name, "something.happened"]


async def test_it_lives_while_it_starts_and_is_ready_once_it_has(broker, store, log, monkeypatch):
    there = asyncio.Event()

    async def declare(queues, broadcasts):
        if not there.is_set():
            raise BrokerUnavailable("nobody listens on port 5672")
        await MemoryBroker.declare(broker, queues, broadcasts)

    monkeypatch.setattr(broker, "declare", declare)
    hosted = Hosted(broker, store, handles, log)

    assert (await hosted.get("/healthz")).status_code == 200
    starting = await hosted.get("/readyz")
    waiting = await log.until("waiting")
    there.set()
    await log.until("ready")
    ready = await hosted.get("/readyz")
    await hosted.end()

    assert (starting.status_code, starting.json()["reason"]) == (503, "the service is starting")
    assert (waiting["missing"], waiting["reason"]) == ("broker", "nobody listens on port 5672")
    assert ready.status_code == 200


async def test_a_store_that_goes_away_makes_it_unready_and_leaves_it_alive(
    broker, store, log, monkeypatch
):
    away = False

    async def ping():
        if away:
            raise StoreUnavailable("postgresql://user@10.0.0.5/db: connection refused")
        return "1"

    monkeypatch.setattr(store, "ping", ping)
    hosted = Hosted(broker, store, handles, log)
    await log.until("ready")
    away = True
    unready, alive = await hosted.get("/readyz"), await hosted.get("/healthz")
    away = False
    ready = await hosted.get("/readyz")
    await hosted.end()

    assert (unready.status_code, alive.status_code, ready.status_code) == (503, 200, 200)
    assert unready.json() == {"status": "unavailable", "reason": "the store does not answer"}


async def test_a_store_that_answers_and_takes_nothing_makes_it_unready(broker, store, log):
    writable = asyncio.Event()

    async def handler(batch):
        if not writable.is_set():
            raise StoreNotWritable("the database is read-only")
        yield [Handled(work) for work in batch]

    hosted = Hosted(broker, store, handler, log)
    await log.until("ready")
    await broker.publish([MESSAGE])
    waits = await log.until("work waits")
    unready = await hosted.get("/readyz")
    writable.set()

    await until(
        lambda: hosted.get("/readyz"), lambda got: got.status_code == 200, "the service to be ready"
    )
    await hosted.end()
    assert "read-only" in waits["reason"]
    assert unready.json()["reason"] == "the store or broker does not answer"


@pytest.mark.parametrize("error", [StoreUnavailable("the server is starting up"), None])
async def test_a_store_that_never_comes_ends_the_start_with_one_sentence(
    broker, store, log, monkeypatch, error
):
    async def prepare():
        if error is None:
            await asyncio.Event().wait()
        raise error

    monkeypatch.setattr(store, "prepare", prepare)
    hosted = Hosted(broker, store, handles, log, start_deadline=0.2)
    with pytest.raises(ExceptionGroup) as raised:
        await hosted.running

    cause = first_cause(raised.value)
    assert isinstance(cause, CannotStart)
    assert str(cause) == (
        "the store did not answer within 0.2 s: " + (str(error) if error else "it does not answer")
    )


@pytest.mark.parametrize("error", [StoreBroken("disk full"), BrokerError("no such user")])
async def test_what_waiting_cannot_help_against_ends_the_start_at_once(
    broker, store, log, monkeypatch, error
):
    async def refuse(*_arguments):
        raise error

    monkeypatch.setattr(store, "prepare", refuse)
    hosted = Hosted(broker, store, handles, log, start_deadline=3600)
    async with waiting_for("the service to give up"):
        with pytest.raises(ExceptionGroup) as raised:
            await hosted.running
    assert first_cause(raised.value) is error


async def test_told_to_stop_while_it_starts_it_stops(broker, store, log, monkeypatch):
    async def prepare():
        await asyncio.Event().wait()

    monkeypatch.setattr(store, "prepare", prepare)
    hosted = Hosted(broker, store, handles, log, start_deadline=3600)
    await log.until("serving")
    await hosted.end()
    assert "ready" not in [line["event"] for line in log.lines]


async def test_what_is_in_hand_is_finished_and_nothing_else_is_taken(broker, store, log):
    begun, go_on, seen = asyncio.Event(), asyncio.Event(), []

    async def handler(batch):
        seen.extend(work.event.id for work in batch)
        begun.set()
        await go_on.wait()
        yield [Handled(work) for work in batch]

    hosted = Hosted(broker, store, handler, log)
    await log.until("ready")
    await broker.publish([MESSAGE])
    await begun.wait()
    hosted.stop.set()
    await log.until("draining")
    await broker.publish([MESSAGE])
    draining = await hosted.get("/readyz")
    go_on.set()
    await hosted.end()

    assert (draining.status_code, draining.json()["reason"]) == (503, "the service is draining")
    assert len(seen) == 1
    assert await broker.depth(QUEUE.name) == 1


async def test_what_is_not_finished_within_the_drain_deadline_is_given_back(broker, store, log):
    begun = asyncio.Event()

    async def handler(batch):
        begun.set()
        await asyncio.Event().wait()
        yield

    hosted = Hosted(broker, store, handler, log, drain_deadline=0.05)
    await log.until("ready")
    await broker.publish([MESSAGE])
    await begun.wait()
    await hosted.end()

    assert await broker.depth(QUEUE.name) == 1
    assert any(line["event"].startswith("not drained in time") for line in log.lines)


async def test_a_worker_that_breaks_for_good_ends_the_process(broker, store, log):
    async def handler(batch):
        raise StoreBroken("benchmark.db: the disk is full")
        yield

    hosted = Hosted(broker, store, handler, log)
    await log.until("ready")
    await broker.publish([MESSAGE])
    async with waiting_for("the service to give up"):
        with pytest.raises(ExceptionGroup) as raised:
            await hosted.running
    assert str(first_cause(raised.value)) == "benchmark.db: the disk is full"


async def test_metrics_tell_what_was_done_and_what_waits(broker, store, log, monkeypatch):
    monkeypatch.setattr("socratic_bench.hosting.metrics.DEPTH_INTERVAL", 0.01)
    done = asyncio.Event()

    async def handler(batch):
        yield [Rejected(batch[0], "nobody can read it"), *map(Handled, batch[1:])]
        done.set()

    hosted = Hosted(broker, store, handler, log)
    await log.until("ready")
    before = (await hosted.get("/metrics")).text
    await broker.publish([MESSAGE, MESSAGE])
    await done.wait()
    looked_up = {f'socratic_dead_letters{{queue="{QUEUE.name}"}} 1.0', "socratic_ready 1.0"}
    after = await until(
        hosted.metrics, lambda text: looked_up <= set(text.splitlines()), "what is looked up"
    )
    await hosted.end()

    queue = f'queue="{QUEUE.name}"'
    assert f'socratic_messages_total{{outcome="handled",{queue}}} 0.0' in before
    assert f'socratic_messages_total{{outcome="handled",{queue}}} 1.0' in after
    assert f'socratic_messages_total{{outcome="rejected",{queue}}} 1.0' in after
    assert f"socratic_oldest_message_seconds{{{queue}}} 0.0" in after
    assert f"socratic_messages_in_flight{{{queue}}} 0.0" in after
    assert f"socratic_message_seconds_count{{{queue}}} 2.0" in after
    assert f"socratic_queue_depth{{{queue}}} 0.0" in after
    assert "process_resident_memory_bytes" in after


async def test_a_port_in_use_is_told_with_its_variable(broker, store, log):
    first = Hosted(broker, store, handles, log)
    port = int((await log.until("serving"))["address"].rpartition(":")[2])
    with pytest.raises(Exception, match=f"SOCRATIC_HEALTH_PORT: cannot listen on 127.0.0.1:{port}"):
        await host_workers(
            WorkerProcessSettings(broker_url=SecretStr("memory://"), health_port=port),
            broker,
            store,
            first._workers,
            asyncio.Event(),
        )
    await first.end()
