"""The destination of a message, a publish to a full queue, and closing."""

from __future__ import annotations

import asyncio

import pytest

from socratic_bench.errors import BrokerClosed, BrokerError, UnroutableMessage
from socratic_bench.events.codec import Message
from socratic_bench.ports.broker import Broker, WorkQueue
from tests.contract.broker.adapters import BrokerAdapter, Limits
from tests.contract.broker.traffic import LONG_DELAY, Traffic, ids, message, messages, new_queue


@pytest.fixture
def needs_backpressure(adapter: BrokerAdapter) -> None:
    if not adapter.waits_when_full:
        pytest.skip(f"{adapter.name} takes messages without a limit")


async def test_declaring_a_queue_again_keeps_its_messages(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish(messages(queue, 2))
    await broker.declare([queue])
    await traffic.until_depth(broker, queue, 2)


async def test_a_queue_cannot_be_declared_for_a_second_type(
    broker: Broker, queue: WorkQueue
) -> None:
    with pytest.raises(BrokerError, match=queue.name):
        await broker.declare([WorkQueue(queue.name, "another.type.v1")])


async def test_a_type_that_nothing_was_declared_for_is_unroutable(broker: Broker) -> None:
    nowhere = Message("id-1", "nobody.takes.this.v1", "model", b"")
    with pytest.raises(UnroutableMessage, match=r"nobody\.takes\.this\.v1"):
        await broker.publish([nowhere])


async def test_an_undeclared_queue_is_named_in_the_error(broker: Broker) -> None:
    with pytest.raises(BrokerError, match="no-such-queue"):
        await broker.depth("no-such-queue")
    with pytest.raises(BrokerError, match="no-such-queue"):
        async with broker.consume("no-such-queue", prefetch=1):
            pass


async def test_publishing_nothing_does_nothing(broker: Broker) -> None:
    await broker.publish([])


async def test_one_publish_may_hold_several_types(broker: Broker, traffic: Traffic) -> None:
    one, other = new_queue(), new_queue()
    await broker.declare([one, other])
    await broker.publish([message(one, 1), message(other, 2), message(one, 3)])
    async with broker.consume(one.name, prefetch=9) as consumer:
        assert sorted(ids(await traffic.take(consumer, 2))) == ["model/1", "model/3"]
    await traffic.until_depth(broker, other, 1)


@pytest.mark.usefixtures("needs_backpressure")
async def test_a_publish_longer_than_the_room_waits_and_goes_on_piece_by_piece(
    adapter: BrokerAdapter, traffic: Traffic
) -> None:
    queue = new_queue()
    async with adapter.open(Limits(max_waiting=3)) as broker:
        await broker.declare([queue])
        publishing = asyncio.create_task(broker.publish(messages(queue, 20)))
        assert await traffic.is_waiting(publishing)
        assert await broker.depth(queue.name) == 3
        delivered: list[str] = []
        async with broker.consume(queue.name, prefetch=2) as consumer:
            while len(delivered) < 20:
                taken = await traffic.receive(consumer)
                assert await broker.depth(queue.name) <= 3
                await consumer.ack(taken)
                delivered += ids(taken)
        await traffic.finish(publishing)
    assert sorted(delivered) == sorted(ids(messages(queue, 20)))


@pytest.mark.usefixtures("needs_backpressure")
async def test_what_comes_back_never_waits_for_room(
    adapter: BrokerAdapter, traffic: Traffic
) -> None:
    queue = new_queue()
    async with adapter.open(Limits(max_waiting=2)) as broker:
        await broker.declare([queue])
        await broker.publish(messages(queue, 2))
        async with broker.consume(queue.name, prefetch=2) as consumer:
            one, _ = await traffic.take(consumer, 2)
            await broker.publish(messages(queue, 2, "more"))
            await consumer.retry(one, 0, "again")
        assert await broker.depth(queue.name) == 4


@pytest.mark.usefixtures("needs_backpressure")
async def test_a_publish_cancelled_while_it_waits_leaves_each_message_whole_or_out(
    adapter: BrokerAdapter, traffic: Traffic
) -> None:
    one = new_queue()
    other = new_queue(one.event_type)
    async with adapter.open(Limits(max_waiting=3)) as broker:
        await broker.declare([one, other])
        await broker.publish([message(one, 0)])
        async with broker.consume(one.name, prefetch=1) as consumer:
            await consumer.ack(await traffic.take(consumer, 1))
        publishing = asyncio.create_task(broker.publish(messages(one, 9, "cut-off")))
        assert await traffic.is_waiting(publishing)
        publishing.cancel()
        await asyncio.wait({publishing})
        assert publishing.cancelled()
        assert [await broker.depth(one.name), await broker.depth(other.name)] == [2, 3]


@pytest.mark.usefixtures("needs_backpressure")
async def test_room_for_two_lets_two_waiting_publishers_go_on(
    adapter: BrokerAdapter, traffic: Traffic
) -> None:
    queue = new_queue()
    async with adapter.open(Limits(max_waiting=2)) as broker:
        await broker.declare([queue])
        await broker.publish(messages(queue, 2))
        publishing = [
            asyncio.create_task(broker.publish([message(queue, 1, group)])) for group in "ab"
        ]
        assert await traffic.is_waiting(publishing[1])
        async with broker.consume(queue.name, prefetch=2) as consumer:
            assert len(await traffic.receive(consumer, 2)) == 2
            for task in publishing:
                await traffic.finish(task)


@pytest.mark.usefixtures("needs_backpressure")
async def test_a_publisher_cancelled_as_its_turn_comes_leaves_the_room_to_the_next(
    adapter: BrokerAdapter, traffic: Traffic
) -> None:
    queue = new_queue()
    async with adapter.open(Limits(max_waiting=1)) as broker:
        await broker.declare([queue])
        await broker.publish([message(queue, 0)])
        first = asyncio.create_task(broker.publish([message(queue, 1)]))
        second = asyncio.create_task(broker.publish([message(queue, 2)]))
        assert await traffic.is_waiting(first)
        assert await traffic.is_waiting(second)
        async with broker.consume(queue.name, prefetch=9) as consumer:
            await traffic.take(consumer, 1)
            first.cancel()
            await traffic.finish(second)
            await asyncio.wait({first})
            assert ids(await traffic.take(consumer, 1)) == [
                "model/2" if first.cancelled() else "model/1"
            ]


@pytest.mark.usefixtures("needs_backpressure")
async def test_closing_wakes_waiting_publishers(adapter: BrokerAdapter, traffic: Traffic) -> None:
    queue = new_queue()
    async with adapter.open(Limits(max_waiting=1)) as broker:
        await broker.declare([queue])
        publishing = [
            asyncio.create_task(broker.publish(messages(queue, 5, group))) for group in "abc"
        ]
        assert await traffic.is_waiting(publishing[0])
        await broker.close()
        for task in publishing:
            with pytest.raises(BrokerClosed):
                await traffic.finish(task)


async def test_closing_wakes_waiting_receivers_and_ends_their_consumers(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish([message(queue, 1)])
    async with broker.consume(queue.name, prefetch=2) as consumer:
        [delivery] = await traffic.take(consumer, 1)
        receiving = asyncio.create_task(traffic.receive(consumer))
        assert await traffic.is_waiting(receiving)
        await broker.close()
        with pytest.raises(BrokerClosed):
            await traffic.finish(receiving)
        with pytest.raises(BrokerClosed):
            await consumer.ack([delivery])


async def test_a_closed_broker_refuses_everything_but_another_close(
    broker: Broker, queue: WorkQueue
) -> None:
    await broker.close()
    await broker.close()
    with pytest.raises(BrokerClosed):
        await broker.declare([queue])
    with pytest.raises(BrokerClosed):
        await broker.publish([message(queue, 1)])
    with pytest.raises(BrokerClosed):
        await broker.depth(queue.name)
    with pytest.raises(BrokerClosed):
        async with broker.consume(queue.name, prefetch=1):
            pass
    with pytest.raises(BrokerClosed):
        async with broker.listen(queue.event_type):
            pass


async def test_no_task_is_left_after_closing(adapter: BrokerAdapter, traffic: Traffic) -> None:
    before = asyncio.all_tasks()
    async with adapter.open(Limits()) as broker:
        queue = new_queue()
        await broker.declare([queue], broadcasts=[queue.event_type])
        async with broker.listen(queue.event_type):
            await broker.publish(messages(queue, 2))
            async with broker.consume(queue.name, prefetch=9) as consumer:
                [one, _] = await traffic.take(consumer, 2)
                await consumer.retry(one, LONG_DELAY, "later")
        await broker.close()
        assert asyncio.all_tasks() == before


async def test_an_open_broker_answers_a_ping_and_a_closed_one_says_so(broker: Broker) -> None:
    await broker.ping()
    await broker.close()
    with pytest.raises(BrokerClosed):
        await broker.ping()
