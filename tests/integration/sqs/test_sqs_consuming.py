"""Long calls, long delays, dead consumers and draining."""

from __future__ import annotations

import asyncio

import pytest

from socratic_bench.adapters.brokers.sqs.broker import SqsBroker
from socratic_bench.adapters.brokers.sqs.copies import Copies
from socratic_bench.adapters.brokers.sqs.wire import WireState
from socratic_bench.errors import BrokerUnavailable
from socratic_bench.ports.broker import WorkQueue
from tests.contract.broker.traffic import LONG_DELAY, Traffic, ids, message, messages, new_queue
from tests.waiting import until, waiting_for

pytestmark = pytest.mark.long

INVISIBLE = 3.0
"""Seconds: as short as seconds of a whole number, and thirds of them, may be."""


async def test_what_is_in_hand_for_long_is_delivered_to_nobody_else(
    url: str, queue: WorkQueue, traffic: Traffic
) -> None:
    broker = SqsBroker(url, invisible=INVISIBLE)
    try:
        await broker.declare([queue])
        await broker.publish([message(queue, 1)])
        async with (
            broker.consume(queue.name, prefetch=1) as consumer,
            broker.consume(queue.name, prefetch=1) as other,
        ):
            receiving = [asyncio.create_task(each.receive(1)) for each in (consumer, other)]
            done, waiting = await asyncio.wait(receiving, timeout=3 * INVISIBLE)
            assert [len(done), len(waiting)] == [1, 1]
            holder = consumer if receiving[0] in done else other
            [task] = done
            await holder.ack(task.result())
            for each in waiting:
                each.cancel()
        await traffic.until_depth(broker, queue, 0)
    finally:
        await broker.close()


async def test_a_consumer_with_short_polls_leaves_none_behind(
    url: str, queue: WorkQueue, traffic: Traffic
) -> None:
    """A function is frozen once it has answered: a poll would hold what it brings."""
    broker = SqsBroker(url, poll_seconds=1)
    try:
        await broker.declare([queue])

        async def polls() -> int:
            return broker.requests.get("receive_message", 0)

        async with broker.consume(queue.name, prefetch=1):
            await until(polls, bool, "a poll")
        assert not [task for task in asyncio.all_tasks() if "poll" in task.get_name()]
        await broker.publish([message(queue, 1)])
        async with broker.consume(queue.name, prefetch=1) as consumer:
            [delivery] = await traffic.take(consumer, 1)
            await consumer.ack([delivery])
    finally:
        await broker.close()


async def test_a_dead_consumer_s_messages_come_back_as_the_same_attempt(
    url: str, queue: WorkQueue, traffic: Traffic
) -> None:
    broker = SqsBroker(url, invisible=INVISIBLE)
    try:
        await broker.declare([queue])
        await broker.publish([message(queue, 1)])
        # As a process that is killed: nothing is settled, and no heartbeat comes.
        await broker._queue(queue.name).queue.receive(1, invisible=INVISIBLE)
        async with broker.consume(queue.name, prefetch=1) as consumer:
            [delivery] = await traffic.take(consumer, 1)
        assert delivery.attempt == 1
    finally:
        await broker.close()


async def test_a_delay_above_15_minutes_is_delayed_again(
    broker: SqsBroker, queue: WorkQueue, traffic: Traffic
) -> None:
    declared = broker._queue(queue.name)
    # What a consumer gets after the first 15 minutes of a longer delay.
    early = Copies(broker._sender, declared.work, declared.queue, declared.dead)
    loop_time = early._now() + LONG_DELAY
    await early.again([message(queue, 1)], WireState(attempts=1, due=loop_time))
    async with broker.consume(queue.name, prefetch=1) as consumer:
        assert await traffic.receives_nothing(consumer)
        await traffic.until_depth(broker, queue, 1)
    late = await declared.queue.receive(1, invisible=INVISIBLE, wait=0)
    assert late == []


async def test_draining_puts_back_what_was_not_handed_out_without_counting(
    broker: SqsBroker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish(messages(queue, 10))
    for _ in range(7):
        async with broker.consume(queue.name, prefetch=10) as consumer:
            [delivery] = await traffic.take(consumer, 1)
            consumer.drain()
            assert await traffic.receive(consumer) == []
            await traffic.until_depth(broker, queue, 9)
            await consumer.retry(delivery, 0, "not now", counted=False)
    found = await broker._queue(queue.name).queue.receive(10, invisible=INVISIBLE)
    assert {each.redeliveries for each in found} == {0}


async def test_a_poll_that_outlives_its_consumer_loses_nothing(
    broker: SqsBroker, queue: WorkQueue, traffic: Traffic
) -> None:
    async with broker.consume(queue.name, prefetch=1) as consumer:
        assert await traffic.receives_nothing(consumer)  # a poll is under way
    await broker.publish([message(queue, 1)])
    async with broker.consume(queue.name, prefetch=1) as consumer:
        async with asyncio.timeout(INVISIBLE):
            [delivery] = await consumer.receive(1)
        assert delivery.message == message(queue, 1)


async def test_a_share_in_hand_is_put_back_until_there_is_room(
    broker: SqsBroker, traffic: Traffic
) -> None:
    queue = new_queue(separate_groups=True)
    await broker.declare([queue])
    await broker.publish(messages(queue, 6))
    async with broker.consume(queue.name, prefetch=10, prefetch_per_group=2) as consumer:
        done: list[str] = []
        while len(done) < 6:
            in_hand = await traffic.take(consumer, 2)
            assert [delivery.attempt for delivery in in_hand] == [1, 1]
            assert await traffic.receives_nothing(consumer)
            await consumer.ack(in_hand)
            done += ids(in_hand)
    assert sorted(done) == ids(messages(queue, 6))
    assert await broker.dead_letters(queue.name) == []


async def test_sqs_dead_letters_what_no_consumer_ever_looked_at(
    broker: SqsBroker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish([message(queue, 1)])
    server_queue = broker._queue(queue.name).queue
    while brought := await server_queue.receive(1, invisible=INVISIBLE, wait=0):
        await server_queue.show_in(0, [brought[0].handle])
    [letter] = await broker.dead_letters(queue.name)
    assert letter.message == message(queue, 1)
    assert "no consumer settled it" in letter.reason
    assert await broker.redrive(queue.name) == 1
    async with broker.consume(queue.name, prefetch=1) as consumer:
        [again] = await traffic.take(consumer, 1)
    assert again.attempt == 1


async def test_what_is_settled_while_copies_fail_takes_nothing_along(
    url: str, traffic: Traffic, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, fails = asyncio.Event(), asyncio.Event()

    async def never_sent(*_: object) -> None:
        begun.set()
        await fails.wait()
        raise BrokerUnavailable("SQS is throttled; try again later")

    queue = new_queue(batch=3)
    broker = SqsBroker(url, invisible=INVISIBLE)
    try:
        await broker.declare([queue])
        await broker.publish(messages(queue, 3))
        async with broker.consume(queue.name, prefetch=3) as consumer:
            in_hand = await traffic.take(consumer, 2)
            monkeypatch.setattr(Copies, "again", never_sent)
            consumer.drain()
            async with waiting_for("the copies"):
                await begun.wait()
            await consumer.ack(in_hand)
            fails.set()
        async with broker.consume(queue.name, prefetch=3) as consumer:
            # SQS delivers what it holds as one message again as a whole.
            again = await traffic.take(consumer, 3)
            await consumer.ack(again)
        assert sorted(ids(again)) == ids(messages(queue, 3))
    finally:
        await broker.close()
