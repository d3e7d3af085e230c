"""A consumer that stops publishes copies of what it never handed out, and goes on settling."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from socratic_bench.adapters.brokers.rabbitmq.broker import RabbitMQBroker
from socratic_bench.adapters.brokers.rabbitmq.publishing import Routing
from socratic_bench.errors import BrokerUnavailable
from socratic_bench.ports.broker import WorkQueue
from tests.contract.broker.traffic import Traffic, ids, messages, new_queue
from tests.waiting import waiting_for


@pytest.fixture
def queue() -> WorkQueue:
    return new_queue(batch=3)


@pytest.fixture
async def broker(url: str, queue: WorkQueue) -> AsyncIterator[RabbitMQBroker]:
    opened = RabbitMQBroker(url)
    await opened.declare([queue])
    yield opened
    await opened.close()


class Republishing:
    """Copies that are on their way until the test lets them arrive, or fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.ends = asyncio.Event(), asyncio.Event()
        self.error: Exception | None = None
        republish = Routing.republish_batches

        async def held(routing: Routing, batches: Any) -> None:
            self.begun.set()
            await self.ends.wait()
            if self.error is not None:
                raise self.error
            await republish(routing, batches)

        monkeypatch.setattr(Routing, "republish_batches", held)


@pytest.mark.parametrize(
    "fails",
    [
        pytest.param(False, id="copies arrive", marks=pytest.mark.long),
        pytest.param(True, id="copies fail"),
    ],
)
async def test_what_is_settled_meanwhile_takes_nothing_along(
    broker: RabbitMQBroker,
    queue: WorkQueue,
    traffic: Traffic,
    monkeypatch: pytest.MonkeyPatch,
    fails: bool,
) -> None:
    republishing = Republishing(monkeypatch)
    if fails:
        republishing.error = BrokerUnavailable("the server is gone; look whether it runs")
    published = messages(queue, 9)
    # Three batches of the server: one wholly in hand, one partly, one that waits.
    async with broker.consume(queue.name, prefetch=5) as consumer:
        await broker.publish(published)
        slow, quick = (in_hand := await traffic.take(consumer, 5))[:3], in_hand[3:]
        consumer.drain()
        async with waiting_for("the copies"):
            await republishing.begun.wait()
        await consumer.ack(quick)
        republishing.ends.set()
        await traffic.until_depth(broker, queue, 2)  # batches
        await consumer.ack(slow)
    left = sorted({*ids(published)} - {*ids(in_hand)})
    async with broker.consume(queue.name, prefetch=100) as consumer:
        again = await traffic.take(consumer, 6 if fails else 4)
        assert await traffic.receives_nothing(consumer)
        await consumer.ack(again)
    # The server takes a batch back as a whole if a copy of a part of it failed.
    assert sorted(ids(again)) == sorted([*left, *ids(quick)] if fails else left)
