"""Messages that travel together are still handed out, and settled, one by one."""

from __future__ import annotations

import pytest

from socratic_bench.ports.broker import Broker, WorkQueue
from tests.contract.broker.traffic import Traffic, ids, message, messages, new_queue


@pytest.fixture
async def queue(broker: Broker) -> WorkQueue:
    declared = new_queue(batch=8)
    await broker.declare([declared])
    return declared


@pytest.mark.smoke
async def test_every_message_of_a_batch_is_delivered_as_it_was_published(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    published = [message(queue, number, f"group-{number % 3}") for number in range(30)]
    await broker.publish(published)
    async with broker.consume(queue.name, prefetch=100) as consumer:
        delivered = await traffic.take(consumer, 30)
        assert {delivery.message for delivery in delivered} == set(published)
        assert {delivery.attempt for delivery in delivered} == {1}
        await consumer.ack(delivered)
    await traffic.until_depth(broker, queue, 0)


async def test_a_consumer_holds_at_most_its_prefetch_of_batches_too(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish(messages(queue, 20))
    async with broker.consume(queue.name, prefetch=3) as consumer:
        in_hand = await traffic.take(consumer, 3)
        assert await traffic.receives_nothing(consumer)
        await consumer.ack(in_hand[:2])
        assert len(await traffic.take(consumer, 2)) == 2
        assert await traffic.receives_nothing(consumer)


async def test_the_messages_of_a_batch_each_go_their_own_way(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish(messages(queue, 8))
    async with broker.consume(queue.name, prefetch=8) as consumer:
        first, second, *others = await traffic.take(consumer, 8)
        await consumer.reject(first, "broken")
        await consumer.retry(second, 0, "again")
        await consumer.ack(others)
        [again] = await traffic.take(consumer, 1)
        assert (again.message, again.attempt) == (second.message, 2)
        await consumer.ack([again])
    await traffic.until_depth(broker, queue, 0)
    [letter] = await broker.dead_letters(queue.name)
    assert (letter.message, letter.reason, letter.attempts) == (first.message, "broken", 1)


async def test_what_is_unsettled_of_a_batch_is_delivered_again(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish(messages(queue, 8))
    async with broker.consume(queue.name, prefetch=8) as consumer:
        delivered = await traffic.take(consumer, 8)
        await consumer.ack(delivered[:5])
    async with broker.consume(queue.name, prefetch=8) as consumer:
        again: list[str] = []
        while not set(ids(delivered[5:])) <= set(again):
            again += ids(await traffic.receive(consumer))


async def test_a_batch_holds_one_group_only_where_groups_are_kept_apart(
    broker: Broker, traffic: Traffic
) -> None:
    queue = new_queue(separate_groups=True, batch=8)
    await broker.declare([queue])
    await broker.publish([message(queue, number, "ab"[number % 2]) for number in range(40)])
    async with broker.consume(queue.name, prefetch=9, prefetch_per_group=3) as consumer:
        in_hand = await traffic.take(consumer, 6)
        assert sorted(delivery.message.group for delivery in in_hand) == [*"aaa", *"bbb"]
        await consumer.ack([each for each in in_hand if each.message.group == "a"])
        assert {each.message.group for each in await traffic.take(consumer, 3)} == {"a"}


async def test_a_redrive_of_some_of_a_dead_batch_leaves_the_others_dead(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish(messages(queue, 8))

    async def dead() -> int:
        return len(await broker.dead_letters(queue.name))

    async with broker.consume(queue.name, prefetch=8) as consumer:
        for delivery in await traffic.take(consumer, 8):
            await consumer.reject(delivery, "broken")
        await traffic.until_is(dead, 8)
        await traffic.until_depth(broker, queue, 0)
    assert await broker.redrive(queue.name, limit=3) == 3
    await traffic.until_is(dead, 5)
    async with broker.consume(queue.name, prefetch=8) as consumer:
        delivered = await traffic.take(consumer, 3)
        await consumer.ack(delivered)
    assert {delivery.attempt for delivery in delivered} == {1}
    left = {letter.message.id for letter in await broker.dead_letters(queue.name)}
    assert left.isdisjoint(ids(delivered))
