"""The consumer loop: it survives passing errors, and counts its work."""

import asyncio
from collections import Counter
from contextlib import asynccontextmanager, contextmanager

import pytest

from socratic_bench.adapters.brokers.memory.broker import MemoryBroker
from socratic_bench.adapters.brokers.memory.consumer import MemoryConsumer
from socratic_bench.concurrency.retry_policy import AdaptivePause, RetryPolicy
from socratic_bench.consuming import worker as worker_module
from socratic_bench.consuming.dispatch import BatchDispatcher, Dispatcher
from socratic_bench.consuming.outcomes import Handled, Postponed, Rejected
from socratic_bench.consuming.queues import JUDGE_RESPONSE_RECORDED, RUNNER_RUN_REQUESTED
from socratic_bench.consuming.worker import Intake, Worker
from socratic_bench.domain.run import Run
from socratic_bench.errors import (
    BrokerClosed,
    BrokerUnavailable,
    DeliveryLost,
    StoreUnavailable,
)
from socratic_bench.events.codec import to_message
from socratic_bench.events.event_types import RunRequested
from tests.unit.events.examples import RUN, TIME, example_events
from tests.waiting import waiting_for

QUEUE = RUNNER_RUN_REQUESTED.name
AT_ONCE = RetryPolicy(draw=lambda: 0.0)
SLOWLY = RetryPolicy(first_delay=600, longest_delay=600, draw=lambda: 1.0)


def requests(count):
    runs = [Run(**{**RUN.model_dump(), "run_id": f"run-{n}"}) for n in range(count)]
    return [to_message(RunRequested.of(run, source="test", time=TIME)) for run in runs]


class Tally:
    """An observer that adds up."""

    def __init__(self) -> None:
        self.in_hand = 0
        self.outcomes = Counter()
        self.has_settled = asyncio.Event()
        self.held = []

    @contextmanager
    def holding(self, queue, times):
        assert queue == QUEUE
        batch = list(times)
        self.held.append(batch)
        yield
        self.held.remove(batch)

    def taken(self, queue, messages):
        assert queue == QUEUE
        self.in_hand += messages

    def settled(self, queue, outcome, messages, seconds):
        assert queue == QUEUE
        assert seconds >= 0
        self.in_hand -= messages
        self.outcomes[outcome] += messages
        self.has_settled.set()


class UnsettlingBroker(MemoryBroker):
    """Its consumers cannot settle while `error` is set; the delivery stays where it is."""

    def __init__(self, error=None, **options) -> None:
        super().__init__(**options)
        self.error = error
        self.refused = asyncio.Event()

    @asynccontextmanager
    async def consume(self, queue, **prefetch):
        async with super().consume(queue, **prefetch) as consumer:
            for name in ("ack", "retry", "reject"):
                setattr(consumer, name, self._unless_error(getattr(consumer, name)))
            yield consumer

    def _unless_error(self, settle):
        async def settle_or_raise(*arguments, **options):
            if self.error is not None:
                self.refused.set()
                raise self.error
            await settle(*arguments, **options)

        return settle_or_raise


def worker_of(broker, handler, observer=None, intake=None):
    dispatcher = BatchDispatcher(broker.publish, Dispatcher(handler, RunRequested, AT_ONCE))
    return Worker(
        broker,
        RUNNER_RUN_REQUESTED,
        dispatcher,
        intake or Intake(longest_pause=0),
        observer=observer,
    )


async def broker_with(messages, broker=None):
    broker = broker or MemoryBroker()
    await broker.declare([RUNNER_RUN_REQUESTED])
    await broker.publish(messages)
    return broker


@pytest.mark.parametrize("outcome", ["handled", "retried", "rejected"])
@pytest.mark.parametrize("error", [DeliveryLost("gone"), BrokerUnavailable("away")], ids=repr)
async def test_what_cannot_be_settled_is_left_to_be_delivered_again(error, outcome):
    broker = await broker_with(requests(2), UnsettlingBroker(error))
    tally, seen = Tally(), []

    async def handler(batch):
        seen.extend(work.event.subject for work in batch)
        if len(seen) == 3:
            worker.drain()
        yield [
            {
                "handled": Handled(work),
                "retried": Postponed(work, 0.0, "busy"),
                "rejected": Rejected(work, "no"),
            }[outcome]
            for work in batch
        ]

    worker = worker_of(broker, handler, tally)
    async with waiting_for("the worker"), asyncio.TaskGroup() as tasks:
        tasks.create_task(worker.run())
        await broker.refused.wait()
        broker.error = None
        await broker.publish(requests(3)[2:])
    assert seen == ["run-0", "run-1", "run-2"]
    assert tally.outcomes == {"returned": 2, outcome: 1}
    assert tally.in_hand == 0
    await broker.close()


async def test_a_closed_broker_ends_the_worker():
    broker = await broker_with(requests(1), UnsettlingBroker(BrokerClosed("closed")))

    async def handler(batch):
        yield [Handled(work) for work in batch]

    async with waiting_for("the worker"):
        with pytest.raises(ExceptionGroup) as raised:
            await worker_of(broker, handler).run()
    assert raised.group_contains(BrokerClosed)
    await broker.close()


async def test_an_observer_is_told_what_became_of_every_message():
    broker = await broker_with(requests(6), MemoryBroker(delivery_limit=1))
    tally, in_hand, held = Tally(), [], []

    async def handler(batch):
        in_hand.append(tally.in_hand)
        held.extend(tally.held)
        worker.drain()
        yield [Handled(work) for work in batch[:3]]
        yield [Postponed(batch[3], 1.0, "busy"), Rejected(batch[4], "no"), Rejected(batch[5], "no")]

    worker = worker_of(broker, handler, tally)
    async with waiting_for("the worker"):
        await worker.run()
    assert in_hand == [6]
    assert held == [[TIME] * 6]
    assert tally.in_hand == 0
    assert tally.held == []
    assert tally.outcomes == {"handled": 3, "retried": 1, "rejected": 2}
    await broker.close()


async def test_a_cancelled_worker_gives_back_what_is_in_hand_and_says_so():
    broker = await broker_with(requests(3))
    tally, begun = Tally(), asyncio.Event()

    async def handler(batch):
        yield [Handled(batch[0])]
        begun.set()
        await asyncio.Event().wait()

    async with waiting_for("the worker"):
        running = asyncio.create_task(worker_of(broker, handler, tally).run())
        await begun.wait()
        running.cancel()
        await asyncio.wait([running])
    assert running.cancelled()
    assert tally.outcomes == {"handled": 1, "returned": 2}
    assert tally.in_hand == 0
    assert tally.held == []
    assert await broker.depth(QUEUE) == 2
    await broker.close()


async def test_however_often_the_store_does_not_answer_no_message_is_dead_lettered():
    broker = await broker_with(requests(10), MemoryBroker(delivery_limit=2))
    calls, attempts = 0, []

    async def handler(batch):
        nonlocal calls
        calls += 1
        if calls <= 200:
            raise StoreUnavailable("away for the whole afternoon")
        attempts.extend(work.attempt for work in batch)
        if len(attempts) == 10:
            worker.drain()
        yield [Handled(work) for work in batch]

    intake = Intake(batch=3, batches=2, prefetch=6, longest_pause=0)
    worker = worker_of(broker, handler, intake=intake)
    async with waiting_for("the worker"):
        await worker.run()
    assert attempts == [1] * 10
    assert await broker.dead_letters(QUEUE) == []
    await broker.close()


async def test_the_batch_after_a_full_one_waits_until_half_of_that_is_settled():
    broker = await broker_with(requests(8))
    batches, goes_on, second, never = [], asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def handler(batch):
        batches.append(len(batch))
        if len(batches) == 1:
            yield [Handled(batch[0])]
            await goes_on.wait()
            yield [Handled(batch[1])]
        else:
            second.set()
        await never.wait()

    intake = Intake(batch=4, batches=2, prefetch=8, longest_pause=0, catch_up_seconds=3_600)
    worker = worker_of(broker, handler, tally := Tally(), intake)
    async with waiting_for("the worker"), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(worker.run())
        await tally.has_settled.wait()
        for _ in range(100):
            await asyncio.sleep(0)
        assert batches == [4]
        goes_on.set()
        await second.wait()
        assert tally.outcomes["handled"] == 2
        running.cancel()
    await broker.close()


async def test_a_full_batch_that_takes_long_does_not_keep_the_next_one_waiting():
    broker = await broker_with(requests(8))
    batches, both = [], asyncio.Event()

    async def handler(batch):
        batches.append(len(batch))
        if len(batches) == 2:
            both.set()
        await both.wait()
        worker.drain()
        yield [Handled(work) for work in batch]

    intake = Intake(batch=4, batches=2, prefetch=8, longest_pause=0, catch_up_seconds=0.01)
    worker = worker_of(broker, handler, intake=intake)
    async with waiting_for("the worker"):
        await worker.run()
    assert batches == [4, 4]
    await broker.close()


async def test_a_worker_that_hurries_pauses_no_more(monkeypatch):
    monkeypatch.setattr(AdaptivePause, "next", lambda *_: 3_600.0)
    broker = await broker_with(requests(1))
    handled, one, two = [], asyncio.Event(), asyncio.Event()

    async def handler(batch):
        handled.extend(work.event.subject for work in batch)
        (one if len(handled) == 1 else two).set()
        yield [Handled(work) for work in batch]

    worker = worker_of(broker, handler)
    async with waiting_for("the worker"), asyncio.TaskGroup() as tasks:
        tasks.create_task(worker.run())
        await one.wait()
        await broker.publish(requests(2)[1:])
        for _ in range(100):
            await asyncio.sleep(0)
        assert len(handled) == 1
        worker.hurry()
        await two.wait()
        worker.drain()
    await broker.close()


async def test_draining_ends_the_pause_of_a_worker(monkeypatch):
    monkeypatch.setattr(AdaptivePause, "next", lambda *_: 3_600.0)
    broker = await broker_with(requests(1))

    async def handler(batch):
        yield [Handled(work) for work in batch]

    worker = worker_of(broker, handler, tally := Tally())
    async with waiting_for("the worker"), asyncio.TaskGroup() as tasks:
        tasks.create_task(worker.run())
        await tally.has_settled.wait()
        worker.drain()
    await broker.close()


async def test_draining_gives_back_what_waits_for_the_store():
    broker = await broker_with(requests(4))
    called = asyncio.Event()

    async def handler(batch):
        called.set()
        raise StoreUnavailable("away")
        yield

    dispatcher = BatchDispatcher(broker.publish, Dispatcher(handler, RunRequested, SLOWLY))
    worker = Worker(broker, RUNNER_RUN_REQUESTED, dispatcher, Intake(longest_pause=0))
    async with waiting_for("the worker"), asyncio.TaskGroup() as tasks:
        tasks.create_task(worker.run())
        await called.wait()
        worker.drain()
    assert await broker.depth(QUEUE) == 4
    await broker.close()


class SilentBroker(MemoryBroker):
    """Confirms no message of a type while a test forbids it."""

    def __init__(self, event_type) -> None:
        super().__init__()
        self.event_type = event_type
        self.refused, self.confirms = asyncio.Event(), asyncio.Event()

    async def publish(self, messages):
        refused = any(message.type == self.event_type for message in messages)
        if refused and not self.confirms.is_set():
            self.refused.set()
            raise BrokerUnavailable("nothing is confirmed")
        await super().publish(messages)


async def test_while_the_broker_confirms_nothing_the_handler_goes_on_and_is_not_repeated():
    recorded = example_events()["response.recorded"]
    broker = await broker_with(requests(3), SilentBroker(recorded.type))
    await broker.declare([JUDGE_RESPONSE_RECORDED])
    begun, tally, reasons = [], Tally(), []

    async def handler(batch):
        for number, work in enumerate(batch):
            begun.append(work.event.subject)
            yield [Handled(work, (recorded,))]
            if number == 0:
                await broker.refused.wait()
        await asyncio.sleep(0)
        reasons.append(worker.waits_for)
        broker.confirms.set()
        worker.drain()

    worker = worker_of(broker, handler, tally)
    async with waiting_for("the worker"):
        await worker.run()
    assert begun == ["run-0", "run-1", "run-2"]
    assert [str(reason) for reason in reasons] == ["nothing is confirmed"]
    assert tally.outcomes == {"handled": 3}
    assert await broker.depth(JUDGE_RESPONSE_RECORDED.name) == 3
    assert worker.waits_for is None
    await broker.close()


async def test_the_groups_are_listed_again_as_soon_as_the_consumer_hears_of_one(monkeypatch):
    monkeypatch.setattr(worker_module, "GROUPS_SECONDS", 600)
    announcements, listed = asyncio.Queue(), asyncio.Queue()
    monkeypatch.setattr(MemoryConsumer, "heard_of_group", lambda _: announcements.get())
    broker = MemoryBroker()
    await broker.declare([RUNNER_RUN_REQUESTED])

    async def groups():
        listed.put_nowait("listed")
        return []

    async def handler(batch):
        yield [Handled(work) for work in batch]

    dispatcher = BatchDispatcher(broker.publish, Dispatcher(handler, RunRequested, AT_ONCE))
    worker = Worker(broker, RUNNER_RUN_REQUESTED, dispatcher, Intake(), groups=groups)
    running = asyncio.create_task(worker.run())
    async with waiting_for("the groups to be listed"):
        await listed.get()
        announcements.put_nowait(None)
        await listed.get()
    worker.drain()
    async with waiting_for("the worker to end"):
        await running
    assert listed.empty()
