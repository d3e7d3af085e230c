"""The broker delivers a published message to one consumer at a time until it is settled."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from functools import partial
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from socratic_bench.errors import BrokerError
from socratic_bench.events.codec import Message
from socratic_bench.ports.broker import Broker, Delivery, WorkQueue
from tests.contract.broker.adapters import BrokerAdapter, Limits
from tests.contract.broker.traffic import LONG_DELAY, Traffic, ids, message, messages, new_queue
from tests.waiting import waiting_for

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=60)


@settings(max_examples=15)
@given(body=st.binary(max_size=2_000), id_=TEXT, group=TEXT, event_type=TEXT)
async def test_a_message_arrives_as_it_was_published(
    adapter: BrokerAdapter, traffic: Traffic, body: bytes, id_: str, group: str, event_type: str
) -> None:
    queue = new_queue(event_type)
    published = Message(id_, event_type, group, body)
    async with adapter.open(Limits()) as broker:
        await broker.declare([queue])
        await broker.publish([published])
        async with broker.consume(queue.name, prefetch=1) as consumer:
            [delivery] = await traffic.take(consumer, 1)
            await consumer.ack([delivery])
    assert delivery.message == published
    assert delivery.attempt == 1


async def test_what_was_published_before_anybody_consumed_is_delivered(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    published = messages(queue, 30)
    await broker.publish(published)
    async with broker.consume(queue.name, prefetch=100) as consumer:
        delivered = await traffic.take(consumer, 30)
    assert sorted(ids(delivered)) == sorted(ids(published))


async def test_a_waiting_receive_gets_what_is_published_later(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    async with broker.consume(queue.name, prefetch=10) as consumer:
        receiving = asyncio.create_task(traffic.receive(consumer))
        assert await traffic.is_waiting(receiving)
        await broker.publish([message(queue, 1)])
        assert ids(await traffic.finish(receiving)) == ["model/1"]


async def test_a_receive_returns_no_more_than_its_limit(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish(messages(queue, 10))
    async with broker.consume(queue.name, prefetch=10) as consumer:
        assert 1 <= len(await traffic.receive(consumer, 4)) <= 4


@pytest.mark.smoke
async def test_an_acked_message_is_never_delivered_again(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish(messages(queue, 5))
    async with broker.consume(queue.name, prefetch=10) as consumer:
        await consumer.ack(await traffic.take(consumer, 5))
    async with broker.consume(queue.name, prefetch=10) as consumer:
        assert await traffic.receives_nothing(consumer)
    await traffic.until_depth(broker, queue, 0)


@pytest.mark.smoke
async def test_what_a_consumer_left_unsettled_is_delivered_again_as_the_same_attempt(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish(messages(queue, 4))
    async with broker.consume(queue.name, prefetch=10) as consumer:
        first = await traffic.take(consumer, 4)
        await consumer.ack(first[:1])
    async with broker.consume(queue.name, prefetch=10) as consumer:
        second = await traffic.take(consumer, 3)
        await consumer.ack(second)
    assert sorted(ids(second)) == sorted(ids(first[1:]))
    assert [delivery.attempt for delivery in second] == [1, 1, 1]


async def test_a_consumer_cancelled_with_messages_in_hand_loses_none(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    in_hand = asyncio.Event()

    async def crash() -> None:
        async with broker.consume(queue.name, prefetch=10) as consumer:
            await traffic.take(consumer, 3)
            in_hand.set()
            await consumer.receive(10)

    await broker.publish(messages(queue, 3))
    crashing = asyncio.create_task(crash())
    async with waiting_for("the consumer to have all in hand"):
        await in_hand.wait()
    crashing.cancel()
    await asyncio.wait({crashing})
    async with broker.consume(queue.name, prefetch=10) as consumer:
        assert {delivery.attempt for delivery in await traffic.take(consumer, 3)} == {1}


async def test_a_cancelled_receive_takes_nothing(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    async with broker.consume(queue.name, prefetch=10) as consumer:
        assert await traffic.receives_nothing(consumer)
        await broker.publish([message(queue, 1)])
        [delivery] = await traffic.take(consumer, 1)
    assert delivery.attempt == 1


async def test_competing_consumers_share_the_messages_without_duplicates(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    async with AsyncExitStack() as stack:
        consumers = [
            await stack.enter_async_context(broker.consume(queue.name, prefetch=20))
            for _ in range(3)
        ]
        await broker.publish(messages(queue, 60))
        shares = await asyncio.gather(*(traffic.take(consumer, 20) for consumer in consumers))
    assert sorted(ids(chain.from_iterable(shares))) == sorted(ids(messages(queue, 60)))


async def test_every_queue_of_a_type_gets_a_copy(broker: Broker, traffic: Traffic) -> None:
    one = new_queue()
    other = new_queue(one.event_type)
    await broker.declare([one, other])
    await broker.publish([message(one, 1)])
    for queue in (one, other):
        async with broker.consume(queue.name, prefetch=1) as consumer:
            [delivery] = await traffic.take(consumer, 1)
            await consumer.ack([delivery])
        assert delivery.message == message(one, 1)


async def test_a_drained_consumer_receives_nothing_and_settles_what_it_has(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish(messages(queue, 3))
    async with broker.consume(queue.name, prefetch=2) as consumer:
        in_hand = await traffic.take(consumer, 2)
        receiving = asyncio.create_task(traffic.receive(consumer))
        assert await traffic.is_waiting(receiving)
        consumer.drain()
        assert await traffic.finish(receiving) == []
        await consumer.ack(in_hand)
        assert await traffic.receive(consumer) == []
    await traffic.until_depth(broker, queue, 1)


async def test_depth_counts_what_waits_and_not_what_is_in_hand(
    broker: Broker, queue: WorkQueue, traffic: Traffic, adapter: BrokerAdapter
) -> None:
    await traffic.until_depth(broker, queue, 0)
    await broker.publish(messages(queue, 6))
    await traffic.until_depth(broker, queue, 6)
    async with broker.consume(queue.name, prefetch=2) as consumer:
        delayed, _ = await traffic.take(consumer, 2)
        consumer.drain()
        await traffic.until_depth(broker, queue, 4)
        await consumer.retry(delayed, LONG_DELAY, "later")
        await traffic.until_depth(broker, queue, 5)
    await traffic.until_depth(broker, queue, 6)


async def test_the_depth_of_a_group_counts_what_is_in_this_process_s_hand_too(
    broker: Broker, traffic: Traffic, adapter: BrokerAdapter
) -> None:
    if not adapter.separates_groups:
        pytest.skip(f"{adapter.name} cannot tell how many messages of a group there are")
    queue = new_queue(separate_groups=True)
    await broker.declare([queue])

    async def depths() -> list[int | None]:
        return [await broker.depth(queue.name, group) for group in ("a", "b", "nobody's")]

    await broker.publish([*messages(queue, 4, "a"), *messages(queue, 2, "b")])
    await traffic.until_is(depths, [4, 2, 0])
    async with broker.consume(queue.name, prefetch=9, prefetch_per_group=2) as consumer:
        in_hand = await traffic.take(consumer, 4)
        await traffic.until_is(depths, [4, 2, 0])
        by_group = {each.message.group: each for each in in_hand}
        await consumer.retry(by_group["a"], LONG_DELAY, "later", counted=False)
        await consumer.ack([by_group["b"]])
        await traffic.until_is(depths, [4, 1, 0])


async def test_a_broker_that_cannot_tell_the_depth_of_a_group_says_so(
    broker: Broker, queue: WorkQueue, traffic: Traffic, adapter: BrokerAdapter
) -> None:
    apart = new_queue(separate_groups=True)
    await broker.declare([apart])
    await broker.publish([*messages(queue, 3), *messages(apart, 3)])
    for each, tells in ((queue, adapter.knows_groups), (apart, adapter.separates_groups)):
        expected = 3 if tells else None
        await traffic.until_is(partial(broker.depth, each.name, "model"), expected)


async def test_settling_twice_is_an_error_and_settles_the_others(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish(messages(queue, 2))
    async with broker.consume(queue.name, prefetch=2) as consumer:
        one, other = await traffic.take(consumer, 2)
        await consumer.ack([one])
        with pytest.raises(BrokerError, match="not in this consumer's hand"):
            await consumer.ack([one, other])
        with pytest.raises(BrokerError, match="not in this consumer's hand"):
            await consumer.retry(other, 0, "settled before")
        with pytest.raises(BrokerError, match="not in this consumer's hand"):
            await consumer.reject(other, "settled before")
    await traffic.until_depth(broker, queue, 0)
    assert await broker.dead_letters(queue.name) == []


async def test_settling_after_the_consumer_ended_does_not_touch_the_redelivery(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish([message(queue, 1)])
    async with broker.consume(queue.name, prefetch=1) as ended:
        [lost] = await traffic.take(ended, 1)
    async with broker.consume(queue.name, prefetch=1) as consumer:
        [held] = await traffic.take(consumer, 1)
        with pytest.raises(BrokerError):
            await ended.ack([lost])
        with pytest.raises(BrokerError):
            await consumer.ack([lost])
    async with broker.consume(queue.name, prefetch=1) as consumer:
        [again] = await traffic.take(consumer, 1)
    assert [held.attempt, again.attempt] == [1, 1]


async def test_a_consumer_that_ended_receives_no_more(broker: Broker, queue: WorkQueue) -> None:
    async with broker.consume(queue.name, prefetch=1) as consumer:
        pass
    with pytest.raises(BrokerError, match=queue.name):
        await consumer.receive(1)


@pytest.mark.smoke
async def test_a_delayed_retry_comes_back_after_its_delay_and_holds_up_nobody(
    broker: Broker, queue: WorkQueue, traffic: Traffic, adapter: BrokerAdapter
) -> None:
    clock = asyncio.get_running_loop().time
    await broker.publish(messages(queue, 5))
    async with broker.consume(queue.name, prefetch=1) as consumer:
        [delayed] = await traffic.take(consumer, 1)
        begun = clock()
        await consumer.retry(delayed, adapter.delay, "busy")
        order: list[Delivery] = []
        while len(order) < 5:
            [delivery] = await traffic.take(consumer, 1)
            await consumer.ack([delivery])
            order.append(delivery)
        waited = clock() - begun
    assert ids(order)[-1] == delayed.message.id
    assert [delivery.attempt for delivery in order] == [1, 1, 1, 1, 2]
    assert waited >= adapter.delay * 0.9


async def test_a_retry_without_delay_comes_back_at_once(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish([message(queue, 1)])
    async with broker.consume(queue.name, prefetch=1) as consumer:
        [first] = await traffic.take(consumer, 1)
        await consumer.retry(first, 0, "again")
        [second] = await traffic.take(consumer, 1)
    assert second.attempt == 2


@pytest.mark.parametrize("delay", [0.0, 0.01])
async def test_a_postponed_message_comes_again_as_the_same_attempt(
    broker: Broker, queue: WorkQueue, traffic: Traffic, delay: float
) -> None:
    await broker.publish([message(queue, 1)])
    async with broker.consume(queue.name, prefetch=1) as consumer:
        [delivery] = await traffic.take(consumer, 1)
        await consumer.retry(delivery, delay, "it failed")
        for _ in range(10):
            [delivery] = await traffic.take(consumer, 1)
            assert delivery.attempt == 2
            await consumer.retry(delivery, delay, "not now", counted=False)
        [delivery] = await traffic.take(consumer, 1)
        await consumer.ack([delivery])
    assert await broker.dead_letters(queue.name) == []
