"""Removing a group removes its waiting messages; the next use creates the group again."""

from __future__ import annotations

import pytest

from socratic_bench.ports.broker import Broker, WorkQueue
from tests.contract.broker.adapters import BrokerAdapter
from tests.contract.broker.traffic import Traffic, ids, message, messages, new_queue


@pytest.fixture
async def queue(broker: Broker) -> WorkQueue:
    declared = new_queue(separate_groups=True)
    await broker.declare([declared])
    return declared


async def test_what_waits_of_a_removed_group_is_gone_and_nothing_of_another(
    broker: Broker, queue: WorkQueue, traffic: Traffic, adapter: BrokerAdapter
) -> None:
    await broker.publish([*messages(queue, 3, "a"), *messages(queue, 2, "b")])
    await broker.remove_group(queue.name, "a")
    assert await broker.depth(queue.name, "a") == (0 if adapter.separates_groups else None)
    async with broker.consume(queue.name, prefetch=9) as consumer:
        assert sorted(ids(await traffic.take(consumer, 2))) == ["b/0", "b/1"]
        assert await traffic.receives_nothing(consumer)


async def test_a_removed_group_is_there_again_when_it_is_published_to(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish([message(queue, "before", "a")])
    await broker.remove_group(queue.name, "a")
    await broker.remove_group(queue.name, "a")
    await broker.publish([message(queue, "after", "a")])
    async with broker.consume(queue.name, prefetch=9) as consumer:
        [delivery] = await traffic.take(consumer, 1)
        assert ids([delivery]) == ["a/after"]
        await consumer.ack([delivery])


async def test_a_group_that_was_never_used_can_be_removed(
    broker: Broker, queue: WorkQueue, adapter: BrokerAdapter
) -> None:
    await broker.remove_group(queue.name, "never")
    assert await broker.depth(queue.name, "never") == (0 if adapter.separates_groups else None)


async def test_what_is_in_hand_of_a_removed_group_stops_no_other(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish([*messages(queue, 3, "a"), message(queue, 0, "b")])
    async with broker.consume(queue.name, prefetch=9, prefetch_per_group=1) as consumer:
        in_hand = await traffic.take(consumer, 2)
        await broker.remove_group(queue.name, "a")
        await broker.publish([message(queue, 1, "b")])
        await consumer.ack([each for each in in_hand if each.message.group == "b"])
        [delivery] = await traffic.take(consumer, 1)
        assert ids([delivery]) == ["b/1"]
