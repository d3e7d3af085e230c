"""The driver may wait without end to send a frame on a broken connection; we do not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from aio_pika.message import IncomingMessage

from socratic_bench.adapters.brokers.rabbitmq import settling
from socratic_bench.adapters.brokers.rabbitmq.broker import RabbitMQBroker
from socratic_bench.adapters.brokers.rabbitmq.consumer import RabbitMQConsumer
from socratic_bench.adapters.brokers.rabbitmq.wire import due_of
from socratic_bench.errors import BrokerUnavailable, DeliveryLost
from socratic_bench.ports.broker import SUSPECT_AFTER, WorkQueue
from tests.contract.broker.traffic import Traffic, ids, message
from tests.waiting import PATIENCE

HOLD_SECONDS = 0.4


class StuckDriver:
    """Sends no acknowledgement for now, of all messages or of those that were delayed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._acknowledge = IncomingMessage.ack
        self.waits = asyncio.Event()
        self.goes_on = asyncio.Event()

    def begin(self, *, delayed_only: bool = False) -> None:
        async def ack(incoming: IncomingMessage, multiple: bool = False) -> None:
            if delayed_only and not due_of(incoming):
                await self._acknowledge(incoming, multiple)
            else:
                self.waits.set()
                await self.goes_on.wait()
                await self._acknowledge(incoming, multiple)

        self._monkeypatch.setattr(IncomingMessage, "ack", ack)

    def end(self) -> None:
        self._monkeypatch.setattr(IncomingMessage, "ack", self._acknowledge)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> StuckDriver:
    monkeypatch.setattr(settling, "SETTLE_SECONDS", 0.2)
    return StuckDriver(monkeypatch)


@pytest.fixture
async def broker(url: str, queue: WorkQueue) -> AsyncIterator[RabbitMQBroker]:
    opened = RabbitMQBroker(url, hold_seconds=HOLD_SECONDS)
    await opened.declare([queue])
    yield opened
    await opened.close()


async def test_a_consumer_that_cannot_send_its_acknowledgement_says_that_the_delivery_is_lost(
    broker: RabbitMQBroker, queue: WorkQueue, traffic: Traffic, driver: StuckDriver
) -> None:
    await broker.publish([message(queue, 1)])
    async with broker.consume(queue.name, prefetch=1) as consumer:
        in_hand = await traffic.take(consumer, 1)
        driver.begin()
        with pytest.raises(DeliveryLost):
            await traffic.finish(asyncio.create_task(consumer.ack(in_hand)))


@pytest.mark.long
async def test_a_consumer_that_cannot_let_go_of_what_it_held_for_long_goes_on_over_another_channel(
    broker: RabbitMQBroker, queue: WorkQueue, traffic: Traffic, driver: StuckDriver
) -> None:
    driver.begin()
    await broker.publish([message(queue, 1)])
    async with broker.consume(queue.name, prefetch=1) as consumer:
        await traffic.take(consumer, 1)
        await traffic.finish(asyncio.create_task(driver.waits.wait()))
        driver.end()
        again = await traffic.take(consumer, 1)
        assert ids(again) == ["model/1"]
        await consumer.ack(again)


@pytest.mark.long
async def test_a_delayed_message_that_was_put_back_is_not_in_hand_for_ever(
    broker: RabbitMQBroker, queue: WorkQueue, traffic: Traffic, driver: StuckDriver
) -> None:
    driver.begin(delayed_only=True)
    await broker.publish([message(queue, 1)])
    async with broker.consume(queue.name, prefetch=1) as consumer:
        [delivery] = await traffic.take(consumer, 1)
        await consumer.retry(delivery, 0.05, "later")
        await consumer.ack(await traffic.take(consumer, 1))
        await traffic.until_depth(broker, queue, 0)


@pytest.mark.long
async def test_a_redrive_that_cannot_take_a_letter_away_says_that_the_broker_is_unavailable(
    broker: RabbitMQBroker, queue: WorkQueue, traffic: Traffic, driver: StuckDriver
) -> None:
    await broker.publish([message(queue, 1)])
    async with broker.consume(queue.name, prefetch=1) as consumer:
        [delivery] = await traffic.take(consumer, 1)
        await consumer.reject(delivery, "broken")
    driver.begin()
    with pytest.raises(BrokerUnavailable):
        await traffic.finish(asyncio.create_task(broker.redrive(queue.name)))


async def test_no_suspect_is_handed_out_before_the_server_knows_that_it_was_moved(
    broker: RabbitMQBroker,
    queue: WorkQueue,
    traffic: Traffic,
    driver: StuckDriver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that ended the process before that would be there twice, and twice a dead letter."""
    monkeypatch.setattr(settling, "SETTLE_SECONDS", PATIENCE)
    await broker.publish([message(queue, 1)])
    for _ in range(SUSPECT_AFTER):
        async with broker.consume(queue.name, prefetch=1) as consumer:
            await traffic.take(consumer, 1)
    driver.begin()
    async with broker.consume(queue.name, prefetch=9) as consumer:
        await traffic.finish(asyncio.create_task(driver.waits.wait()))
        await traffic.until_is(lambda: suspects_taken(consumer), 1)
        assert await traffic.receives_nothing(consumer)
        driver.goes_on.set()
        assert ids(await traffic.take(consumer, 1)) == ["model/1"]


async def suspects_taken(consumer: RabbitMQConsumer) -> int:
    """How many the server has sent to this consumer that were not handed out."""
    return len(consumer._unacked._suspects)
