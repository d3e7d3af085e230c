"""Delayed messages: any consumer puts them back, once and in time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from socratic_bench.adapters.brokers.rabbitmq.broker import RabbitMQBroker
from socratic_bench.ports.broker import WorkQueue
from tests.contract.broker.traffic import LONG_DELAY, Traffic, ids, message, messages


@pytest.fixture
async def broker(url: str, queue: WorkQueue) -> AsyncIterator[RabbitMQBroker]:
    opened = RabbitMQBroker(url)
    await opened.declare([queue])
    yield opened
    await opened.close()


@pytest.fixture
async def hasty_broker(url: str, queue: WorkQueue) -> AsyncIterator[RabbitMQBroker]:
    """The server gets a copy of each message that a consumer holds for longer than a second."""
    opened = RabbitMQBroker(url, hold_seconds=1.0)
    await opened.declare([queue])
    yield opened
    await opened.close()


async def test_a_delayed_message_outlives_the_consumer_that_delayed_it(
    broker: RabbitMQBroker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish([message(queue, 1)])
    async with broker.consume(queue.name, prefetch=1) as consumer:
        [delivery] = await traffic.take(consumer, 1)
        await consumer.retry(delivery, 0.1, "later")
    await traffic.until_depth(broker, queue, 1)
    async with broker.consume(queue.name, prefetch=1) as consumer:
        [again] = await traffic.take(consumer, 1)
        assert (again.message, again.attempt) == (delivery.message, 2)
        await consumer.ack([again])
    await traffic.until_depth(broker, queue, 0)


@pytest.mark.long
async def test_a_message_that_is_due_after_the_longest_hold_is_held_in_parts_and_comes_once(
    hasty_broker: RabbitMQBroker, queue: WorkQueue, traffic: Traffic
) -> None:
    clock = asyncio.get_running_loop().time
    await hasty_broker.publish([message(queue, 1)])
    async with hasty_broker.consume(queue.name, prefetch=2) as consumer:
        [delivery] = await traffic.take(consumer, 1)
        begun = clock()
        await consumer.retry(delivery, 2.5, "later")
        [again] = await traffic.take(consumer, 1)
        assert clock() - begun >= 2.5 * 0.9
        assert again.attempt == 2
        await consumer.ack([again])
        assert await traffic.receives_nothing(consumer)


async def test_of_several_consumers_one_puts_a_message_back(
    broker: RabbitMQBroker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish(messages(queue, 20))
    async with (
        broker.consume(queue.name, prefetch=20) as consumer,
        broker.consume(queue.name, prefetch=20) as other,
    ):
        other.drain()  # it takes nothing more, and puts back what it delayed
        for delivery in await traffic.take(consumer, 20):
            await consumer.retry(delivery, 0.05, "later")
        again = await traffic.take(consumer, 20)
        await consumer.ack(again)
        assert sorted(ids(again)) == sorted(ids(messages(queue, 20)))
        assert await traffic.receives_nothing(consumer)
    await traffic.until_depth(broker, queue, 0)


@pytest.mark.long
async def test_what_is_not_due_for_long_is_in_hand_and_counted(
    broker: RabbitMQBroker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish([message(queue, 1)])
    async with broker.consume(queue.name, prefetch=1) as consumer:
        [delivery] = await traffic.take(consumer, 1)
        await consumer.retry(delivery, LONG_DELAY, "much later")
        await traffic.until_depth(broker, queue, 1)
        assert await traffic.receives_nothing(consumer)
    await traffic.until_depth(broker, queue, 1)
