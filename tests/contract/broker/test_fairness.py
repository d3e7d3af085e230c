"""Groups take turns, and a consumer holds no more messages than it asked for."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from socratic_bench.ports.broker import Broker, WorkQueue
from tests.contract.broker.adapters import BrokerAdapter
from tests.contract.broker.traffic import Traffic, ids, message, messages, new_queue

OTHERS = [f"model-{number}" for number in range(20)]


@pytest.fixture
async def queue(broker: Broker) -> WorkQueue:
    declared = new_queue(separate_groups=True)
    await broker.declare([declared])
    return declared


async def test_a_consumer_holds_at_most_its_prefetch(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish(messages(queue, 5))
    async with broker.consume(queue.name, prefetch=3) as consumer:
        in_hand = await traffic.take(consumer, 3)
        receiving = asyncio.create_task(traffic.receive(consumer))
        assert await traffic.is_waiting(receiving)
        await consumer.ack(in_hand[:1])
        assert len(await traffic.finish(receiving)) == 1


async def test_a_consumer_holds_at_most_its_prefetch_of_a_group(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    for group in ("a", "b", "c"):
        await broker.publish(messages(queue, 10, group))
    async with broker.consume(queue.name, prefetch=100, prefetch_per_group=2) as consumer:
        in_hand = await traffic.take(consumer, 6)
        assert Counter(one.message.group for one in in_hand) == {"a": 2, "b": 2, "c": 2}
        receiving = asyncio.create_task(traffic.receive(consumer))
        assert await traffic.is_waiting(receiving)
        await consumer.ack([one for one in in_hand if one.message.group == "b"])
        [*more] = await traffic.finish(receiving)
        assert {one.message.group for one in more} == {"b"}


async def test_what_one_consumer_may_not_hold_of_a_group_is_for_the_others(
    broker: Broker, traffic: Traffic
) -> None:
    queue = new_queue(separate_groups=True, batch=10)
    await broker.declare([queue])
    await broker.publish(messages(queue, 300))
    async with broker.consume(queue.name, prefetch=1_000, prefetch_per_group=100) as one:
        first = await traffic.take(one, 100)
        async with broker.consume(queue.name, prefetch=1_000, prefetch_per_group=200) as other:
            rest = await traffic.take(other, 190)  # a batch may be on its way to the first
            assert len({*ids(first), *ids(rest)}) == 290
            await one.ack(first)
            await other.ack(rest)


async def test_every_way_of_settling_makes_room_for_the_group(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish(messages(queue, 4))
    async with broker.consume(queue.name, prefetch=9, prefetch_per_group=1) as consumer:
        [first] = await traffic.take(consumer, 1)
        await consumer.ack([first])
        [second] = await traffic.take(consumer, 1)
        await consumer.reject(second, "broken")
        [third] = await traffic.take(consumer, 1)
        await consumer.retry(third, 0, "again")
        [fourth] = await traffic.take(consumer, 1)
        await consumer.ack([fourth])
        assert len(await traffic.take(consumer, 1)) == 1


async def test_a_group_whose_queue_was_empty_meanwhile_still_counts_what_is_in_hand(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    async with broker.consume(queue.name, prefetch=9, prefetch_per_group=1) as consumer:
        await broker.publish([message(queue, 1)])
        in_hand = await traffic.take(consumer, 1)
        await broker.publish([message(queue, 2)])
        assert await traffic.receives_nothing(consumer)
        await consumer.ack(in_hand)
        assert ids(await traffic.take(consumer, 1)) == ["model/2"]


async def test_per_group_prefetch_is_each_consumers_own(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish(messages(queue, 3))
    async with (
        broker.consume(queue.name, prefetch=9, prefetch_per_group=1) as one,
        broker.consume(queue.name, prefetch=9, prefetch_per_group=1) as other,
    ):
        await traffic.take(one, 1)
        assert len(await traffic.take(other, 1)) == 1
        assert await traffic.receives_nothing(one)
        assert await traffic.receives_nothing(other)


async def test_a_group_with_a_long_queue_does_not_delay_the_others(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish(messages(queue, 1_000, "slow"))
    await broker.publish([message(queue, 1, group) for group in OTHERS])
    async with broker.consume(queue.name, prefetch=100, prefetch_per_group=4) as consumer:
        delivered = await traffic.take(consumer, 4 + len(OTHERS), limit=5)
        assert Counter(one.message.group for one in delivered) == {
            "slow": 4,
            **dict.fromkeys(OTHERS, 1),
        }


async def test_slow_messages_in_hand_do_not_delay_what_the_other_groups_send_later(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish(messages(queue, 1_000, "slow"))
    async with broker.consume(queue.name, prefetch=10, prefetch_per_group=4) as consumer:
        await traffic.take(consumer, 4)
        for number in range(30):
            await broker.publish([message(queue, number, "quick")])
            quick = await traffic.take(consumer, 1)
            assert ids(quick) == [f"quick/{number}"]
            await consumer.ack(quick)


async def test_groups_that_are_served_flow_and_are_no_problem(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    async def problems() -> list[str]:
        return list(broker.problems())

    async with broker.consume(queue.name, prefetch=10, prefetch_per_group=4) as consumer:
        consumer.serve(["a", "b"])
        await traffic.until_is(problems, [])
        consumer.serve(["b", "c"])
        await traffic.until_is(problems, [])
        await broker.publish([message(queue, 1, group) for group in "abcd"])
        assert {one.message.group for one in await traffic.take(consumer, 4)} == set("abcd")


async def test_without_a_limit_per_group_the_groups_still_have_their_turns(
    broker: Broker, queue: WorkQueue, traffic: Traffic, adapter: BrokerAdapter
) -> None:
    if not adapter.separates_groups:
        # AWS turns to quiet groups by itself (fair queues); its emulators deliver in order.
        pytest.skip(f"{adapter.name} turns to other groups only at the limit of one")
    await broker.publish(messages(queue, 1_000, "long"))
    await broker.publish([message(queue, 1, group) for group in OTHERS])
    turns: Counter[str] = Counter()
    async with broker.consume(queue.name, prefetch=len(OTHERS)) as consumer:
        while len(turns) < 1 + len(OTHERS):
            delivered = await traffic.receive(consumer)
            turns.update(one.message.group for one in delivered)
            await consumer.ack(delivered)
    assert turns["long"] < 100
