"""Broadcasts reach all listeners, and wait for none."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from socratic_bench.errors import BrokerClosed, BrokerError
from socratic_bench.events.codec import Message
from socratic_bench.ports.broker import Broker, WorkQueue
from tests.contract.broker.traffic import Traffic, ids, message


@pytest.fixture
async def event_type(broker: Broker) -> str:
    declared = f"test.{uuid4().hex[:12]}.v1"
    await broker.declare([], broadcasts=[declared])
    return declared


def _broadcast(event_type: str, number: int) -> Message:
    return Message(f"news/{number}", event_type, "experiment", b"%d" % number)


@pytest.mark.smoke
async def test_every_listener_hears_a_broadcast(
    broker: Broker, event_type: str, traffic: Traffic
) -> None:
    published = [_broadcast(event_type, number) for number in range(5)]
    async with broker.listen(event_type) as one, broker.listen(event_type) as other:
        await broker.publish(published)
        assert sorted(ids(await traffic.hear(one, 5))) == ids(published)
        assert sorted(ids(await traffic.hear(other, 5))) == ids(published)


async def test_a_waiting_listener_hears_what_is_published_later(
    broker: Broker, event_type: str, traffic: Traffic
) -> None:
    async with broker.listen(event_type) as listener:
        hearing = asyncio.create_task(traffic.hear(listener, 1))
        assert await traffic.is_waiting(hearing)
        await broker.publish([_broadcast(event_type, 1)])
        assert await traffic.finish(hearing) == [_broadcast(event_type, 1)]


async def test_a_broadcast_nobody_listens_to_is_no_error(broker: Broker, event_type: str) -> None:
    await broker.publish([_broadcast(event_type, 1)])


async def test_a_listener_hears_only_what_is_published_while_it_is_open(
    broker: Broker, event_type: str, traffic: Traffic
) -> None:
    await broker.publish([_broadcast(event_type, 1)])
    async with broker.listen(event_type):
        pass
    await broker.publish([_broadcast(event_type, 2)])
    async with broker.listen(event_type) as listener:
        await broker.publish([_broadcast(event_type, 3)])
        assert ids(await traffic.hear(listener, 1)) == ["news/3"]


async def test_a_listener_hears_only_its_types(
    broker: Broker, event_type: str, traffic: Traffic
) -> None:
    second, third = f"{event_type}.second", f"{event_type}.third"
    await broker.declare([], broadcasts=[second, third])
    async with broker.listen(event_type, third) as listener:
        for number, published in enumerate([second, third, second, event_type]):
            await broker.publish([_broadcast(published, number)])
        assert sorted(ids(await traffic.hear(listener, 2))) == ["news/1", "news/3"]


async def test_a_queue_and_a_listener_of_one_type_each_get_a_copy(
    broker: Broker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.declare([], broadcasts=[queue.event_type])
    async with broker.listen(queue.event_type) as listener:
        await broker.publish([message(queue, 1)])
        assert await traffic.hear(listener, 1) == [message(queue, 1)]
    await traffic.until_depth(broker, queue, 1)


async def test_a_listener_that_reads_nothing_holds_up_nobody(
    broker: Broker, event_type: str, traffic: Traffic
) -> None:
    published = [_broadcast(event_type, number) for number in range(3_000)]
    async with broker.listen(event_type) as listener:
        publishing = asyncio.create_task(broker.publish(published))
        await traffic.finish(publishing)
        assert await traffic.hear(listener, 1)


async def test_only_declared_broadcasts_can_be_listened_to(
    broker: Broker, queue: WorkQueue
) -> None:
    for event_type in (queue.event_type, "never.declared.v1"):
        with pytest.raises(BrokerError, match=event_type):
            async with broker.listen(event_type):
                pass


async def test_the_iteration_ends_with_the_context(
    broker: Broker, event_type: str, traffic: Traffic
) -> None:
    async with broker.listen(event_type) as listener:
        hearing = asyncio.create_task(traffic.hear(listener, 1))
        assert await traffic.is_waiting(hearing)
    assert await traffic.finish(hearing) == []


async def test_closing_the_broker_ends_a_waiting_listener(
    broker: Broker, event_type: str, traffic: Traffic
) -> None:
    async with broker.listen(event_type) as listener:
        hearing = asyncio.create_task(traffic.hear(listener, 1))
        assert await traffic.is_waiting(hearing)
        await broker.close()
        with pytest.raises(BrokerClosed):
            await traffic.finish(hearing)
