"""A server that shows a consumer of a queue, has messages for it, and hands out none."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aio_pika
import pytest
from structlog.testing import capture_logs

from socratic_bench.adapters.brokers.rabbitmq import declaring, topology
from socratic_bench.adapters.brokers.rabbitmq.broker import RabbitMQBroker
from socratic_bench.adapters.brokers.rabbitmq.connection import namespace_of
from socratic_bench.ports.broker import WorkQueue
from tests.contract.broker.traffic import Traffic, message
from tests.integration.rabbitmq.conftest import stranger


@pytest.fixture
async def broker(
    url: str, queue: WorkQueue, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[RabbitMQBroker]:
    monkeypatch.setattr(declaring, "WATCH_SECONDS", 0.1)
    opened = RabbitMQBroker(url)
    await opened.declare([queue])
    yield opened
    await opened.close()


@pytest.fixture
def consumed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, str]]:
    """Every queue that is consumed from now on, with the consumer's tag."""
    found: list[tuple[Any, str]] = []
    consume = aio_pika.Queue.consume

    async def consume_and_note(queue: Any, *arguments: Any, **options: Any) -> str:
        tag = await consume(queue, *arguments, **options)
        found.append((queue, tag))
        return tag

    monkeypatch.setattr(aio_pika.Queue, "consume", consume_and_note)
    return found


async def keep(_: Any) -> None:
    """Take a message in hand, and never settle it."""


async def test_what_is_not_handed_out_is_consumed_over_another_channel(
    url: str,
    broker: RabbitMQBroker,
    queue: WorkQueue,
    traffic: Traffic,
    consumed: list[tuple[Any, str]],
) -> None:
    name = topology.named(queue.name, namespace_of(url))
    with capture_logs() as told:
        async with broker.consume(queue.name, prefetch=1) as consumer, stranger(url) as channel:
            await broker.publish([message(queue, 1)])
            await consumer.ack(await traffic.take(consumer, 1))
            # The server forgets the consumer, and says nothing; another one has its hands full.
            [(ours, tag)] = [each for each in consumed if each[0].name == name]
            await ours.cancel(tag)
            await channel.set_qos(prefetch_count=1)
            other = await channel.get_queue(name, ensure=False)
            await other.consume(keep)
            await broker.publish([message(queue, 2), message(queue, 3)])
            await consumer.ack(await traffic.take(consumer, 1))
    assert [name] in [each.get("queues") for each in told]


@pytest.mark.long
async def test_a_queue_of_which_something_is_in_hand_is_left_as_it_is(
    broker: RabbitMQBroker, queue: WorkQueue, traffic: Traffic, consumed: list[tuple[Any, str]]
) -> None:
    async with broker.consume(queue.name, prefetch=1) as consumer:
        await broker.publish([message(queue, number) for number in (1, 2, 3)])
        in_hand = await traffic.take(consumer, 1)
        before = len(consumed)
        for _ in range(5):
            await broker._watch.look()
        await consumer.ack(in_hand)
        assert len(consumed) == before
