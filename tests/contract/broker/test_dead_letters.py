"""The broker keeps an unhandled message with its reason, and can redrive or purge it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from socratic_bench.ports.broker import Broker, DeadLetter, WorkQueue
from tests.contract.broker.traffic import Traffic, ids, message, messages, new_queue

DELIVERY_LIMIT = 3  # of the broker fixture


async def _reject(broker: Broker, queue: WorkQueue, traffic: Traffic, count: int) -> None:
    async with broker.consume(queue.name, prefetch=count) as consumer:
        for delivery in await traffic.take(consumer, count):
            await consumer.reject(delivery, f"cannot read {delivery.message.id}")


@pytest.mark.smoke
async def test_a_rejected_message_is_a_dead_letter_with_the_reason(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish([message(queue, 1)])
    await _reject(broker, queue, traffic, 1)
    expected: Sequence[DeadLetter] = [
        DeadLetter(message(queue, 1), queue.name, "cannot read model/1", 1)
    ]
    await traffic.until_is(lambda: broker.dead_letters(queue.name), expected)
    await traffic.until_depth(broker, queue, 0)
    async with broker.consume(queue.name, prefetch=1) as consumer:
        assert await traffic.receives_nothing(consumer)


async def test_a_message_retried_as_often_as_the_queue_allows_is_a_dead_letter(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish([message(queue, 1)])
    async with broker.consume(queue.name, prefetch=1) as consumer:
        for attempt in range(1, DELIVERY_LIMIT + 1):
            [delivery] = await traffic.take(consumer, 1)
            assert delivery.attempt == attempt
            await consumer.retry(delivery, 0, f"failure {attempt}")
        assert await traffic.receives_nothing(consumer)
    expected: Sequence[DeadLetter] = [
        DeadLetter(message(queue, 1), queue.name, "failure 3", DELIVERY_LIMIT)
    ]
    await traffic.until_is(lambda: broker.dead_letters(queue.name), expected)


async def test_redeliveries_between_them_neither_count_as_attempts_nor_reset_them(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish([message(queue, 1)])
    for attempt in range(1, DELIVERY_LIMIT + 1):
        for _ in range(2):
            async with broker.consume(queue.name, prefetch=1) as consumer:
                [delivery] = await traffic.take(consumer, 1)
                assert delivery.attempt == attempt
        async with broker.consume(queue.name, prefetch=1) as consumer:
            [delivery] = await traffic.take(consumer, 1)
            await consumer.retry(delivery, 0, f"failure {attempt}")
    expected = [DeadLetter(message(queue, 1), queue.name, "failure 3", DELIVERY_LIMIT)]
    await traffic.until_is(lambda: broker.dead_letters(queue.name), expected)


async def test_the_dead_letters_of_a_queue_can_be_counted_without_looking_at_them(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    assert await broker.dead_letter_depth(queue.name) == 0
    await broker.publish(messages(queue, 3))
    await _reject(broker, queue, traffic, 2)
    await traffic.until_is(lambda: broker.dead_letter_depth(queue.name), 2)
    await traffic.until_depth(broker, queue, 1)


async def test_a_queue_that_was_only_inspected_and_is_not_there_has_no_dead_letters(
    broker: Broker,
) -> None:
    queue = new_queue()
    for _ in range(2):  # the first look creates nothing
        sentences = await broker.inspect([queue])
        assert await broker.dead_letter_depth(queue.name) == 0
        assert await broker.dead_letters(queue.name) == []
        assert sentences == await broker.inspect([queue])


async def test_dead_letters_are_listed_oldest_first_and_stay(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    for one in messages(queue, 4):
        await broker.publish([one])
        await _reject(broker, queue, traffic, 1)

    async def oldest_two() -> list[str]:
        letters = await broker.dead_letters(queue.name, limit=2)
        return [letter.message.id for letter in letters]

    await traffic.until_is(oldest_two, ["model/0", "model/1"])
    await traffic.until_is(oldest_two, ["model/0", "model/1"])
    assert len(await broker.dead_letters(queue.name)) == 4


@pytest.mark.smoke
async def test_redriven_messages_are_delivered_as_new(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish(messages(queue, 5))
    await _reject(broker, queue, traffic, 5)
    assert await broker.redrive(queue.name, limit=2) == 2
    assert await broker.redrive(queue.name) == 3
    assert await broker.redrive(queue.name) == 0
    assert await broker.dead_letters(queue.name) == []
    await traffic.until_depth(broker, queue, 5)
    async with broker.consume(queue.name, prefetch=5) as consumer:
        delivered = await traffic.take(consumer, 5)
    assert sorted(ids(delivered)) == ids(messages(queue, 5))
    assert {delivery.attempt for delivery in delivered} == {1}


async def test_a_redrive_wakes_a_waiting_consumer(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish([message(queue, 1)])
    async with broker.consume(queue.name, prefetch=1) as consumer:
        await consumer.reject((await traffic.take(consumer, 1))[0], "broken")
        await broker.redrive(queue.name)
        assert ids(await traffic.take(consumer, 1)) == ["model/1"]


async def test_purged_dead_letters_are_gone(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish(messages(queue, 3))
    await _reject(broker, queue, traffic, 2)
    assert await broker.purge_dead_letters(queue.name) == 2
    assert await broker.purge_dead_letters(queue.name) == 0
    assert await broker.dead_letters(queue.name) == []
    assert await broker.redrive(queue.name) == 0
    await traffic.until_depth(broker, queue, 1)


async def test_letters_that_were_looked_at_are_there_for_who_comes_next(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish(messages(queue, 3))
    await _reject(broker, queue, traffic, 3)

    async def dead() -> int:
        return len(await broker.dead_letters(queue.name))

    await traffic.until_is(dead, 3)
    assert {await dead() for _ in range(50)} == {3}
    assert await broker.redrive(queue.name) == 3
