"""The same traffic in other pipelines: three hops over RabbitMQ, one message at a time, no store.

Persistent messages on quorum queues, publisher confirms, a prefetch of 200, a response of about
2 KB, everything in one process. The bare one is aio-pika itself; the other one is FastStream.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import uuid4

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage
from aiormq.abc import FieldTable

PREFETCH = 200
TEXT = "Which part of the problem would you like to look at first, and why that one? " * 26
"""About 2 KB."""

HOPS = ("requested", "recorded", "scored")
ARGUMENTS: FieldTable = {"x-queue-type": "quorum"}

OnMessage = Callable[[AbstractIncomingMessage], Awaitable[None]]


class Counting(Protocol):
    """What counts the runs that came through."""

    done: int


@dataclass
class Counted:
    """A count."""

    done: int = 0


def answer(requested: dict[str, Any]) -> dict[str, Any]:
    """The runner's part here: an answer."""
    return {**requested, "text": TEXT}


def score(recorded: dict[str, Any]) -> dict[str, Any]:
    """The judge's part here: next to nothing."""
    return {"run": recorded["run"], "interrogative": float(recorded["text"].endswith("?"))}


class Bare:
    """aio-pika, and nothing else."""

    def __init__(self, publishing: AbstractChannel) -> None:
        self._publishing = publishing
        prefix = f"bench-{uuid4().hex[:8]}"
        self._names = {hop: f"{prefix}.{hop}" for hop in HOPS}
        self.done = 0

    async def declare(self) -> None:
        for name in self._names.values():
            await self._publishing.declare_queue(name, durable=True, arguments=ARGUMENTS)

    async def delete(self) -> None:
        for name in self._names.values():
            await self._publishing.queue_delete(name)

    async def publish(self, hop: str, body: dict[str, Any]) -> None:
        message = aio_pika.Message(
            json.dumps(body).encode(), delivery_mode=aio_pika.DeliveryMode.PERSISTENT
        )
        await self._publishing.default_exchange.publish(message, routing_key=self._names[hop])

    async def consume(self, channel: AbstractChannel, hop: str, handle: OnMessage) -> None:
        await channel.set_qos(prefetch_count=PREFETCH)
        queue = await channel.get_queue(self._names[hop], ensure=False)
        await queue.consume(handle)

    async def run(self, message: AbstractIncomingMessage) -> None:
        await self.publish("recorded", answer(json.loads(message.body)))
        await message.ack()

    async def judge(self, message: AbstractIncomingMessage) -> None:
        await self.publish("scored", score(json.loads(message.body)))
        await message.ack()

    async def curate(self, message: AbstractIncomingMessage) -> None:
        json.loads(message.body)
        await message.ack()
        self.done += 1


async def bare(url: str, runs: int) -> float:
    """Runs per second of aio-pika."""
    async with (
        await aio_pika.connect(url) as connection,
        connection.channel() as publishing,
        connection.channel() as first,
        connection.channel() as second,
        connection.channel() as third,
    ):
        pipeline = Bare(publishing)
        try:
            await pipeline.declare()
            await pipeline.consume(first, "requested", pipeline.run)
            await pipeline.consume(second, "recorded", pipeline.judge)
            await pipeline.consume(third, "scored", pipeline.curate)
            return await _timed(lambda body: pipeline.publish("requested", body), pipeline, runs)
        finally:
            await pipeline.delete()


async def _timed(
    publish: Callable[[dict[str, Any]], Awaitable[None]], pipeline: Counting, runs: int
) -> float:
    """Runs per second, from the first that is published to the last that is done."""
    started = time.perf_counter()
    for first in range(0, runs, PREFETCH):
        numbers = range(first, min(first + PREFETCH, runs))
        await asyncio.gather(*(publish({"run": number}) for number in numbers))
    async with asyncio.timeout(300):
        while pipeline.done < runs:  # noqa: ASYNC110 - a look a moment costs it nothing
            await asyncio.sleep(0.01)
    return runs / (time.perf_counter() - started)


async def faststream(url: str, runs: int) -> float:
    """Runs per second of FastStream."""
    from faststream.middlewares import AckPolicy
    from faststream.rabbit import Channel, QueueType, RabbitBroker, RabbitQueue

    prefix = f"bench-{uuid4().hex[:8]}"
    requested, recorded, scored = (
        RabbitQueue(f"{prefix}.{hop}", durable=True, queue_type=QueueType.QUORUM) for hop in HOPS
    )
    broker = RabbitBroker(url, default_channel=Channel(prefetch_count=PREFETCH), logger=None)
    counting = Counted()

    @broker.subscriber(requested, ack_policy=AckPolicy.NACK_ON_ERROR)
    async def run(body: dict[str, Any]) -> None:
        await broker.publish(answer(body), queue=recorded, persist=True)

    @broker.subscriber(recorded, ack_policy=AckPolicy.NACK_ON_ERROR)
    async def judge(body: dict[str, Any]) -> None:
        await broker.publish(score(body), queue=scored, persist=True)

    @broker.subscriber(scored, ack_policy=AckPolicy.NACK_ON_ERROR)
    async def curate(body: dict[str, Any]) -> None:
        counting.done += 1

    async def publish(body: dict[str, Any]) -> None:
        await broker.publish(body, queue=requested, persist=True)

    try:
        async with broker:
            await broker.start()
            return await _timed(publish, counting, runs)
    finally:
        async with await aio_pika.connect(url) as connection, connection.channel() as channel:
            for queue in (requested, recorded, scored):
                await channel.queue_delete(queue.name)
