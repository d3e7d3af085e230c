"""A foreign client can read our messages, and we can read its messages."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import aio_pika
import pytest
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from yarl import URL

from socratic_bench.adapters.brokers.rabbitmq import topology
from socratic_bench.adapters.brokers.rabbitmq.broker import RabbitMQBroker
from socratic_bench.domain.run import Run
from socratic_bench.errors import BrokerError
from socratic_bench.events.codec import to_message
from socratic_bench.events.event_types import RUN_REQUESTED, RunRequested
from socratic_bench.ports.broker import WorkQueue
from tests.contract.broker.traffic import Traffic, message
from tests.integration.rabbitmq.conftest import stranger
from tests.servers.rabbitmq import delete


@asynccontextmanager
async def declared(url: str, queue: WorkQueue) -> AsyncIterator[RabbitMQBroker]:
    broker = RabbitMQBroker(url)
    try:
        await broker.declare([queue])
        yield broker
    finally:
        await broker.close()


def name_on_server(url: str, queue: WorkQueue) -> str:
    return topology.named(queue.name, URL(url).query["namespace"])


def requested(repeat: int) -> RunRequested:
    run = Run(
        run_id=f"run-{repeat}",
        experiment_id="exp-1",
        model_id="openai/gpt",
        scenario_id="s1",
        dimension="ethical",
        repeat=repeat,
    )
    return RunRequested.of(run, source="planner", time=datetime(2026, 1, 2, tzinfo=UTC))


@pytest.fixture
def queue() -> WorkQueue:
    return WorkQueue("requests", RUN_REQUESTED, batch=10)


async def test_a_message_says_in_its_properties_what_it_is_and_is_a_cloud_event(
    url: str, queue: WorkQueue
) -> None:
    event = requested(1)
    async with declared(url, queue) as broker, stranger(url) as channel:
        await broker.publish([to_message(event)])
        incoming = await (await channel.get_queue(name_on_server(url, queue))).get()
        assert incoming.content_type == "application/cloudevents+json"
        assert (incoming.message_id, incoming.type) == (event.id, RUN_REQUESTED)
        assert (incoming.app_id, incoming.correlation_id) == ("planner", "exp-1")
        assert incoming.headers["cloudEvents:subject"] == "run-1"
        assert incoming.headers["socratic-group"] == "openai/gpt"
        assert incoming.delivery_mode == aio_pika.DeliveryMode.PERSISTENT
        read = JSONFormat().read(CloudEvent, incoming.body)
        assert read.get_id() == event.id
        await incoming.ack()


async def test_a_batch_is_a_batch_of_cloud_events(url: str, queue: WorkQueue) -> None:
    events = [requested(repeat) for repeat in range(1, 6)]
    async with declared(url, queue) as broker, stranger(url) as channel:
        await broker.publish([to_message(event) for event in events])
        incoming = await (await channel.get_queue(name_on_server(url, queue))).get()
        assert incoming.content_type == "application/cloudevents-batch+json"
        batch = json.loads(incoming.body)
        assert [each["id"] for each in batch] == [event.id for event in events]
        assert [
            JSONFormat().read(CloudEvent, json.dumps(each).encode()).get_type() for each in batch
        ] == [RUN_REQUESTED] * 5
        await incoming.ack()


@pytest.mark.parametrize(
    "body",
    [b"\xff\x00", *(pytest.param(each, marks=pytest.mark.long) for each in (b"", b"[1, 2", b"[]"))],
)
async def test_what_a_stranger_published_is_delivered_as_it_is(
    url: str, queue: WorkQueue, traffic: Traffic, body: bytes
) -> None:
    async with declared(url, queue) as broker, stranger(url) as channel:
        await channel.default_exchange.publish(
            aio_pika.Message(body, headers={"socratic-attempts": "many", "socratic-parts": "x"}),
            routing_key=name_on_server(url, queue),
        )
        async with broker.consume(queue.name, prefetch=1) as consumer:
            [delivery] = await traffic.take(consumer, 1)
            assert (delivery.message.body, delivery.attempt) == (body, 1)
            await consumer.reject(delivery, "no event")
        [letter] = await broker.dead_letters(queue.name)
        assert (letter.message.body, letter.reason) == (body, "no event")


@pytest.mark.long
async def test_a_stranger_s_message_without_a_group_can_be_redriven(
    url: str, queue: WorkQueue, traffic: Traffic
) -> None:
    apart = WorkQueue("apart", RUN_REQUESTED, separate_groups=True)
    async with declared(url, apart) as broker, stranger(url) as channel:
        await broker.publish([message(apart, 1, "known")])
        async with broker.consume(apart.name, prefetch=2) as consumer:
            await consumer.ack(await traffic.take(consumer, 1))
            await channel.default_exchange.publish(
                aio_pika.Message(b"{"),
                routing_key=topology.group_queue(name_on_server(url, apart), "known"),
            )
            [delivery] = await traffic.take(consumer, 1)
            await consumer.reject(delivery, "no event")
            assert await broker.redrive(apart.name) == 1
            [again] = await traffic.take(consumer, 1)
            assert (again.message.body, again.attempt) == (b"{", 1)
            await consumer.ack([again])
    await delete(url, [apart], ["known", ""])


async def test_a_queue_that_was_declared_differently_is_refused_with_what_differs(
    url: str, queue: WorkQueue
) -> None:
    async with stranger(url) as channel:
        arguments = {**topology.QUEUE_ARGUMENTS, "x-delivery-limit": 5}
        name = name_on_server(url, queue)
        await channel.declare_queue(name, durable=True, arguments=arguments)
        with pytest.raises(BrokerError, match=r"declared differently.*x-delivery-limit"):
            async with declared(url, queue):
                pass


@pytest.mark.long
async def test_namespaces_keep_out_of_each_others_way(
    url: str, queue: WorkQueue, traffic: Traffic
) -> None:
    other_url = str(URL(url).update_query(namespace=f"{URL(url).query['namespace']}-other"))
    async with declared(url, queue) as broker, declared(other_url, queue) as other:
        await broker.publish([message(queue, 1)])
        await traffic.until_depth(broker, queue, 1)
        assert await other.depth(queue.name) == 0
    await delete(other_url, [queue])
