"""The broker finds a message that ends its consumers; its companions are not suspects."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from socratic_bench.ports import broker as port
from socratic_bench.ports.broker import (
    SUSPECT_AFTER,
    Broker,
    Consumer,
    DeadLetter,
    Delivery,
    WorkQueue,
    ended_alone,
)
from tests.contract.broker.adapters import BrokerAdapter
from tests.contract.broker.traffic import Traffic, ids, message, messages, new_queue
from tests.waiting import waiting_for


async def _die_holding(broker: Broker, queue: WorkQueue, traffic: Traffic, times: int) -> None:
    """So many consumers take one message each and end without settling it."""
    for _ in range(times):
        async with broker.consume(queue.name, prefetch=1) as consumer:
            await traffic.take(consumer, 1)


async def test_a_suspect_is_handed_out_alone_and_nothing_beside_it(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish([message(queue, 1, "suspect")])
    await _die_holding(broker, queue, traffic, SUSPECT_AFTER)
    async with broker.consume(queue.name, prefetch=10) as consumer:
        alone = await traffic.receive(consumer)
        assert ids(alone) == ["suspect/1"]
        await broker.publish(messages(queue, 5))
        assert await traffic.receives_nothing(consumer)
        await consumer.ack(alone)
        await consumer.ack(await traffic.take(consumer, 5))
    await traffic.until_depth(broker, queue, 0)
    assert await broker.dead_letters(queue.name) == []


async def test_a_suspect_counts_as_waiting(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish([message(queue, 1)])
    await _die_holding(broker, queue, traffic, SUSPECT_AFTER + 1)
    await traffic.until_depth(broker, queue, 1)


async def test_a_suspect_gets_its_turn_although_other_work_is_always_in_hand(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish([message(queue, 1, "suspect")])
    await _die_holding(broker, queue, traffic, SUSPECT_AFTER)
    in_hand: set[str] = set()
    beside: list[set[str]] = []
    left = {"suspect/1", *ids(messages(queue, 200))}

    async def handle(consumer: Consumer) -> None:
        while deliveries := await consumer.receive(1):
            in_hand.update(ids(deliveries))
            await asyncio.sleep(0.001)
            if ids(deliveries) == ["suspect/1"]:
                beside.append(set(in_hand))
            in_hand.difference_update(ids(deliveries))
            await consumer.ack(deliveries)
            left.difference_update(ids(deliveries))
            if not left:
                consumer.drain()

    await broker.publish(messages(queue, 200))
    async with broker.consume(queue.name, prefetch=20) as consumer, waiting_for("all to be done"):
        await asyncio.gather(*(handle(consumer) for _ in range(4)))
    assert beside == [{"suspect/1"}]
    assert await broker.dead_letters(queue.name) == []


@pytest.mark.parametrize("counted", [True, False])
async def test_a_suspect_that_is_retried_is_none_any_more(
    broker: Broker, queue: WorkQueue, traffic: Traffic, counted: bool
) -> None:
    await broker.publish([message(queue, 1, "suspect")])
    await _die_holding(broker, queue, traffic, SUSPECT_AFTER)
    async with broker.consume(queue.name, prefetch=10) as consumer:
        [suspect] = await traffic.take(consumer, 1)
        await consumer.retry(suspect, 0, "busy", counted=counted)
        [again] = await traffic.take(consumer, 1)
        await broker.publish([message(queue, 1)])
        assert len(await traffic.take(consumer, 1)) == 1
    assert again.attempt == 1 + counted


async def _make_suspects(broker: Broker, queue: WorkQueue, traffic: Traffic, *names: str) -> None:
    """Publish messages; each is in the hands of several consumers when they end."""
    await broker.publish([message(queue, 1, name) for name in names])
    for _ in range(SUSPECT_AFTER):
        async with AsyncExitStack() as stack:
            consumers = [
                await stack.enter_async_context(broker.consume(queue.name, prefetch=1))
                for _ in names
            ]
            await asyncio.gather(*(traffic.take(consumer, 1) for consumer in consumers))


async def test_a_suspect_that_takes_long_and_ends_nobody_keeps_others_waiting_for_a_while_only(
    broker: Broker, queue: WorkQueue, traffic: Traffic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(port, "ALONE_SECONDS", (0.3, 0.3))
    await _make_suspects(broker, queue, traffic, "slow", "other")
    async with broker.consume(queue.name, prefetch=10) as consumer:
        alone = await traffic.receive(consumer)
        beside = await traffic.receive(consumer)
        assert sorted(ids([*alone, *beside])) == ["other/1", "slow/1"]
        assert [len(alone), len(beside)] == [1, 1]
        assert all(delivery.suspect for delivery in [*alone, *beside])
        await broker.publish([message(queue, 2)])
        normal = await traffic.receive(consumer)
        assert [(delivery.message.id, delivery.suspect) for delivery in normal] == [
            ("model/2", False)
        ]
        await consumer.ack([*beside, *normal, *alone])
    await traffic.until_depth(broker, queue, 0)
    assert await broker.dead_letters(queue.name) == []


async def test_what_ends_its_consumers_late_is_the_only_dead_letter(
    broker: Broker, queue: WorkQueue, traffic: Traffic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(port, "ALONE_SECONDS", (0.1, 0.3))
    long = 0.8  # longer than both, for a good message as for what ends the consumer
    await _make_suspects(broker, queue, traffic, "late", "good")
    done: list[str] = []

    async def live() -> None:
        async with broker.consume(queue.name, prefetch=10) as consumer:
            while in_hand := await _received_within(consumer, long):
                if "late/1" in ids(in_hand):
                    return
                await consumer.ack(in_hand)
                done.extend(ids(in_hand))

    async with waiting_for("the dead letter and the good message"):
        while len(letters := await broker.dead_letters(queue.name)) + len(done) < 2:
            await live()
    assert [letter.message.id for letter in letters] == ["late/1"]
    assert done == ["good/1"]


async def _received_within(consumer: Consumer, seconds: float) -> list[Delivery]:
    """All that is handed out until nothing is for so many seconds."""
    received: list[Delivery] = []
    while True:
        try:
            async with asyncio.timeout(seconds):
                received += await consumer.receive(10)
        except TimeoutError:
            return received


@pytest.mark.parametrize("batch", [1, 8])
async def test_what_ends_every_consumer_is_the_only_dead_letter(
    broker: Broker, traffic: Traffic, batch: int
) -> None:
    queue = new_queue(batch=batch)
    await broker.declare([queue])
    await broker.publish(messages(queue, 30))
    poison = "model/13"
    done: set[str] = set()
    deaths_alone = 0

    async def live() -> None:
        nonlocal deaths_alone
        async with broker.consume(queue.name, prefetch=10) as consumer:
            while delivered := await traffic.receive_if_any(consumer, 10):
                if poison in ids(delivered):
                    deaths_alone += len(delivered) == 1
                    return
                await consumer.ack(delivered)
                done.update(ids(delivered))

    others = {*ids(messages(queue, 30))} - {poison}
    async with waiting_for("the dead letter and all other messages"):
        while not (letters := await broker.dead_letters(queue.name)) or not others <= done:
            await live()
    assert [(each.message.id, each.reason) for each in letters] == [
        (poison, ended_alone(SUSPECT_AFTER))
    ]
    assert done == others
    assert deaths_alone >= SUSPECT_AFTER
    expected: list[DeadLetter] = list(letters)
    await traffic.until_is(lambda: broker.dead_letters(queue.name), expected)
    await traffic.until_depth(broker, queue, 0)


@pytest.mark.parametrize("batch", [1, 8])
async def test_draining_makes_no_suspects(broker: Broker, traffic: Traffic, batch: int) -> None:
    queue = new_queue(batch=batch)
    await broker.declare([queue])
    await broker.publish(messages(queue, 60))
    done: set[str] = set()
    for _ in range(20):
        async with broker.consume(queue.name, prefetch=40) as consumer:
            [delivery] = await traffic.take(consumer, 1)
            consumer.drain()
            await consumer.ack([delivery])
            done.add(delivery.message.id)
    left = {*ids(messages(queue, 60))} - done
    await traffic.until_is(lambda: _attempts_of_all(broker, queue, traffic, len(left)), {1})
    assert await broker.dead_letters(queue.name) == []


async def _attempts_of_all(
    broker: Broker, queue: WorkQueue, traffic: Traffic, count: int
) -> set[int]:
    """All of the queue at once in one hand, which a suspect could not be; then given up."""
    async with broker.consume(queue.name, prefetch=100) as consumer:
        return {delivery.attempt for delivery in await traffic.take(consumer, count)}


async def test_killed_consumers_leave_no_dead_letter(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    published = messages(queue, 1_000)
    await broker.publish(published)
    choose, kills = random.Random(1), 50
    left = set(ids(published))

    async def work() -> None:
        nonlocal kills
        async with broker.consume(queue.name, prefetch=20) as consumer:
            while left:
                delivered = await traffic.receive_if_any(consumer, 5)
                if kills and delivered and choose.random() < 0.25:
                    kills -= 1
                    _cancel_me()
                await asyncio.sleep(0)
                await consumer.ack(delivered)
                left.difference_update(ids(delivered))

    async with waiting_for("all messages to be handled"):
        await asyncio.gather(*(_again_and_again(work, lambda: bool(left)) for _ in range(3)))
    assert kills == 0
    assert await broker.dead_letters(queue.name) == []


def _cancel_me() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


async def _again_and_again(work: Callable[[], Awaitable[None]], wanted: Callable[[], bool]) -> None:
    """Start `work` again after each kill."""
    while wanted():
        working = asyncio.ensure_future(work())
        await asyncio.wait({working})
        if not working.cancelled():
            working.result()


async def test_what_was_published_together_with_a_suspect_keeps_its_group(
    adapter: BrokerAdapter, broker: Broker, traffic: Traffic
) -> None:
    queue = new_queue(separate_groups=True)
    await broker.declare([queue])
    await broker.publish([message(queue, 1, "a")])
    for _ in range(SUSPECT_AFTER):
        async with broker.consume(queue.name, prefetch=9, prefetch_per_group=1) as consumer:
            await traffic.take(consumer, 1)
    async with broker.consume(queue.name, prefetch=9, prefetch_per_group=1) as consumer:
        [suspect] = await traffic.take(consumer, 1)
        await consumer.retry(suspect, 0, "again", counted=False)
        [again] = await traffic.take(consumer, 1)
        assert again.message == message(queue, 1, "a")
        await broker.publish([message(queue, 2, "a"), message(queue, 1, "b")])
        assert ids(await traffic.take(consumer, 1)) == ["b/1"]
        assert await traffic.receives_nothing(consumer)
