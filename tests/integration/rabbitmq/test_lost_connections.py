"""Connections that break, servers that are away, and consumers that hold on for long."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from itertools import count

import pytest
from aio_pika.abc import AbstractConnection
from aio_pika.exceptions import AMQPError
from yarl import URL

from socratic_bench.adapters.brokers.rabbitmq import connection as reconnecting
from socratic_bench.adapters.brokers.rabbitmq import declaring, health
from socratic_bench.adapters.brokers.rabbitmq.broker import RabbitMQBroker
from socratic_bench.adapters.brokers.rabbitmq.publishing import Routing
from socratic_bench.adapters.brokers.rabbitmq.sources import Sources
from socratic_bench.errors import (
    BrokerClosed,
    BrokerError,
    BrokerUnavailable,
    DeliveryLost,
    InvalidSettings,
)
from socratic_bench.ports.broker import SUSPECT_AFTER, WorkQueue
from tests.contract.broker.traffic import Traffic, ids, message, messages
from tests.servers.proxy import Proxy, proxy
from tests.servers.rabbitmq import delete
from tests.waiting import waiting_for


@pytest.fixture
async def way(url: str) -> AsyncIterator[Proxy]:
    """The proxy of the broker's connections."""
    server = URL(url)
    async with proxy(server.host or "", server.port or 5672) as between:
        yield between


@pytest.fixture
async def broker(url: str, way: Proxy, queue: WorkQueue) -> AsyncIterator[RabbitMQBroker]:
    opened = RabbitMQBroker(str(URL(url).with_host("127.0.0.1").with_port(way.port)))
    await opened.declare([queue])
    yield opened
    await opened.close()


async def test_a_consumer_goes_on_after_its_connection_was_cut(
    broker: RabbitMQBroker, way: Proxy, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish(messages(queue, 3))
    async with broker.consume(queue.name, prefetch=3) as consumer:
        lost = await traffic.take(consumer, 3)
        receiving = asyncio.create_task(traffic.take(consumer, 3))
        way.cut()
        again = await traffic.finish(receiving)
        assert sorted(ids(again)) == sorted(ids(lost))
        assert {delivery.attempt for delivery in again} == {1}
        with pytest.raises(DeliveryLost, match="delivered again"):
            await consumer.ack(lost)
        await consumer.ack(again)
    await traffic.until_depth(broker, queue, 0)


@pytest.mark.long
async def test_connections_that_are_cut_again_and_again_leave_no_dead_letter(
    broker: RabbitMQBroker, way: Proxy, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish(messages(queue, 600))
    left = {*ids(messages(queue, 600))}
    async with broker.consume(queue.name, prefetch=20) as consumer:
        for batch in count(1):
            if not left:
                break
            delivered = await traffic.receive(consumer, 5)
            if batch % 4 == 0 and batch <= 120:
                way.cut()
            with suppress(DeliveryLost):
                await consumer.ack(delivered)
                left.difference_update(ids(delivered))
    assert await broker.dead_letters(queue.name) == []


@pytest.mark.long
async def test_what_is_sent_along_with_what_ends_consumers_becomes_suspect_in_small_numbers(
    broker: RabbitMQBroker, way: Proxy, queue: WorkQueue, traffic: Traffic
) -> None:
    """The server cannot tell a cut connection from a killed process."""
    left, suspects = {*ids(messages(queue, 64))}, set[str]()
    await broker.publish(messages(queue, 64))
    async with broker.consume(queue.name, prefetch=64) as consumer:
        while left:
            in_hand = await traffic.take(consumer, 1)
            if in_hand[0].suspect:
                suspects.update(ids(in_hand))
            else:
                while more := await traffic.receive_if_any(consumer, 64):
                    in_hand += more
            if "model/40" in ids(in_hand) and not in_hand[0].suspect:
                way.cut()
                continue
            with suppress(DeliveryLost):
                await consumer.ack(in_hand)
                left.difference_update(ids(in_hand))
    assert "model/40" in suspects
    assert len(suspects) <= 4
    assert await broker.dead_letters(queue.name) == []


@pytest.mark.long
async def test_a_move_that_ends_with_its_channel_keeps_no_suspect_back(
    broker: RabbitMQBroker,
    way: Proxy,
    queue: WorkQueue,
    traffic: Traffic,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    move, begun = Routing.to_suspects, asyncio.Event()

    async def move_for_ever(*_: object) -> None:
        begun.set()
        await asyncio.Event().wait()

    await broker.publish([message(queue, 1)])
    for _ in range(SUSPECT_AFTER):
        async with broker.consume(queue.name, prefetch=1) as consumer:
            await traffic.take(consumer, 1)
    monkeypatch.setattr(Routing, "to_suspects", move_for_ever)
    async with broker.consume(queue.name, prefetch=1) as consumer:
        await traffic.finish(asyncio.create_task(begun.wait()))
        monkeypatch.setattr(Routing, "to_suspects", move)
        way.cut()
        [suspect] = await traffic.take(consumer, 1)
        assert suspect.suspect
        await consumer.ack([suspect])


async def test_a_server_that_comes_back_without_its_queues_gets_them_again(
    url: str, broker: RabbitMQBroker, way: Proxy, queue: WorkQueue, traffic: Traffic
) -> None:
    async def problems() -> list[str]:
        return list(broker.problems())

    await broker.publish([message(queue, 1)])
    async with broker.consume(queue.name, prefetch=9) as consumer:
        [lost] = await traffic.take(consumer, 1)
        await traffic.until_is(problems, [])
        await way.stop()
        await traffic.until_is(lambda: _is_empty(problems), False)
        await delete(url, [queue])
        publishing = asyncio.create_task(broker.publish([message(queue, 2)]))
        await way.start()
        await traffic.finish(publishing)
        [delivery] = await traffic.take(consumer, 1)
        assert ids([delivery]) == ["model/2"]
        await consumer.retry(delivery, 0.01, "later")
        [again] = await traffic.take(consumer, 1)
        await consumer.ack([again])
        await traffic.until_is(problems, [])
    assert ids([lost]) == ["model/1"]


async def _is_empty(problems: Callable[[], Awaitable[list[str]]]) -> bool:
    return not await problems()


async def test_an_attempt_to_connect_that_fails_leaves_nothing_behind() -> None:
    async with proxy("127.0.0.1", 1) as nowhere:
        gc.disable()
        try:
            with pytest.raises(AMQPError):
                await reconnecting.connect(URL(f"amqp://127.0.0.1:{nowhere.port}"))
            await asyncio.to_thread(gc.collect)
        finally:
            gc.enable()


async def test_a_link_that_is_closed_just_when_it_connects_is_closed(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`asyncio.wait_for`, as the driver uses it, loses a cancellation that comes at that moment."""
    connect, connecting = reconnecting.connect, asyncio.Event()

    async def lose_the_cancellation(url: URL) -> AbstractConnection:
        connection = await connect(url)
        with suppress(asyncio.CancelledError):
            connecting.set()
            await asyncio.Event().wait()
        return connection

    monkeypatch.setattr(reconnecting, "connect", lose_the_cancellation)
    opened = reconnecting.ReconnectingConnection(url)
    waiting = asyncio.create_task(opened.connected())
    await connecting.wait()
    async with waiting_for("the end of the connection"):
        await opened.close()
        with pytest.raises(BrokerClosed):
            await waiting


async def test_a_broker_is_closed_although_its_driver_loses_the_cancellation_of_a_look(
    url: str, queue: WorkQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking = asyncio.Event()

    async def look(*_: object) -> None:
        try:
            looking.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise BrokerUnavailable("the channel was closed") from None

    monkeypatch.setattr(declaring, "WATCH_SECONDS", 0.01)
    monkeypatch.setattr(health, "look", look)
    broker = RabbitMQBroker(url)
    await broker.declare([queue])
    async with waiting_for("the end of the broker"):
        await looking.wait()
        await broker.close()


@pytest.mark.long
async def test_a_retry_that_is_cancelled_before_its_copy_is_published_loses_nothing(
    broker: RabbitMQBroker,
    queue: WorkQueue,
    traffic: Traffic,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = asyncio.Event()

    async def publish_never(*_: object) -> None:
        begun.set()
        await asyncio.Event().wait()

    await broker.publish([message(queue, 1)])
    async with broker.consume(queue.name, prefetch=1) as consumer:
        [delivery] = await traffic.take(consumer, 1)
        with monkeypatch.context() as patched:
            patched.setattr(consumer._routing, "republish", publish_never)
            retrying = asyncio.create_task(consumer.retry(delivery, 1, "busy"))
            await begun.wait()
            retrying.cancel()
            await asyncio.wait({retrying})
        [again] = await traffic.take(consumer, 1)
        assert (again.message, again.attempt) == (delivery.message, 1)
        await consumer.ack([again])


async def test_a_consumer_that_breaks_is_noticed_by_whoever_waits_for_messages(
    broker: RabbitMQBroker,
    queue: WorkQueue,
    traffic: Traffic,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def broken(_: object) -> list[str]:
        raise ValueError("a bug")

    monkeypatch.setattr(Sources, "ready", broken)
    async with broker.consume(queue.name, prefetch=1) as consumer:
        with pytest.raises(BrokerError, match=r"consumer broke: a bug"):
            await traffic.receive(consumer)


async def test_a_publisher_waits_for_a_server_that_is_away_for_a_while(
    broker: RabbitMQBroker, way: Proxy, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish([message(queue, 1)])
    await way.stop()
    publishing = asyncio.create_task(broker.publish(messages(queue, 20, "later")))
    assert await traffic.is_waiting(publishing)
    await way.start()
    await traffic.finish(publishing)
    async with broker.consume(queue.name, prefetch=100) as consumer:
        delivered = await traffic.take(consumer, 21)
    assert set(ids(delivered)) == {"model/1", *ids(messages(queue, 20, "later"))}


async def test_a_listener_hears_again_after_its_connection_was_cut(
    broker: RabbitMQBroker, way: Proxy, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.declare([], broadcasts=["news.v1"])
    news = message(WorkQueue("none", "news.v1"), 1)
    async with broker.listen("news.v1") as listener:
        way.cut()
        hearing = asyncio.create_task(traffic.hear(listener, 1))
        while not hearing.done():
            await broker.publish([news])
            await asyncio.wait({hearing}, timeout=0.05)
        assert ids(await hearing) == ids([news])


@pytest.mark.long
async def test_a_server_that_stays_away_is_said_to_without_the_password(
    queue: WorkQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconnecting, "PATIENCE", 0.3)
    broker = RabbitMQBroker("amqp://somebody:s3cret@127.0.0.1:1/here")
    try:
        with pytest.raises(
            BrokerUnavailable, match=r"amqp://127\.0\.0\.1:1/here.*refused|failed"
        ) as caught:
            await broker.declare([queue])
        with pytest.raises(BrokerUnavailable):
            await broker.ping()
    finally:
        await broker.close()
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "address", ["amqp://", "http://127.0.0.1", "127.0.0.1:5672", "amqp://a:b:c"]
)
def test_an_address_that_is_none_is_refused_without_repeating_it(address: str) -> None:
    with pytest.raises(InvalidSettings, match="amqp://user:password@host:port"):
        RabbitMQBroker(address)


@pytest.mark.long
async def test_what_is_held_for_too_long_is_delivered_again_while_work_on_it_goes_on(
    url: str, queue: WorkQueue, traffic: Traffic
) -> None:
    broker = RabbitMQBroker(url, hold_seconds=0.2)
    try:
        await broker.declare([queue])
        await broker.publish([message(queue, 1)])
        async with broker.consume(queue.name, prefetch=2) as consumer:
            [held] = await traffic.take(consumer, 1)
            [copy] = await traffic.take(consumer, 1)
            assert copy.message == held.message
            assert copy.attempt == 1
            await consumer.ack([held])
            await consumer.ack([copy])
        await traffic.until_depth(broker, queue, 0)
    finally:
        await broker.close()
