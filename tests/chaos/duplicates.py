"""Deliver every message a second time, later and out of order."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aio_pika
from aio_pika.abc import AbstractConnection, AbstractIncomingMessage

from socratic_bench.adapters.brokers.rabbitmq import topology
from socratic_bench.adapters.brokers.rabbitmq.wire import from_amqp, to_amqp
from socratic_bench.ports.broker import WorkQueue
from tests.waiting import until

TOGETHER = 40
"""Messages that are shuffled with each other before they are delivered once more."""

PATIENCE = 2.0
"""Seconds after which fewer are, too."""


@asynccontextmanager
async def delivered_twice(url: str, *queues: WorkQueue) -> AsyncIterator[None]:
    """While open, send every message of these queues once more, in random order."""
    connection = await aio_pika.connect_robust(url, reconnect_interval=0.2)
    tasks = []
    try:
        await _declared_again(connection)
        for queue in queues:
            channel = await connection.channel()
            await channel.set_qos(prefetch_count=TOGETHER)
            copies = await channel.declare_queue(f"{queue.name}.twice", durable=True)
            await copies.bind(topology.events_exchange(""), routing_key=queue.event_type)
            heard: asyncio.Queue[AbstractIncomingMessage] = asyncio.Queue()
            await copies.consume(heard.put)
            tasks.append(asyncio.create_task(_repeat(channel, queue, heard)))
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await connection.close()


async def _declared_again(connection: AbstractConnection) -> None:
    """Wait until the services have declared again what the server has lost."""

    async def is_there() -> bool:
        channel = await connection.channel()
        try:
            await channel.get_exchange(topology.events_exchange(""))
        except aio_pika.exceptions.ChannelNotFoundEntity:
            return False
        await channel.close()
        return True

    await until(is_there, bool, "the exchange of all events")


async def _repeat(
    channel: aio_pika.abc.AbstractChannel,
    queue: WorkQueue,
    heard: asyncio.Queue[AbstractIncomingMessage],
) -> None:
    chance = random.Random(queue.name)
    seen: set[str] = set()
    while True:
        together = [await heard.get()]
        try:
            async with asyncio.timeout(PATIENCE):
                while len(together) < TOGETHER // 2:
                    together.append(await heard.get())
        except TimeoutError:
            pass
        messages = {message.id: message for each in together for message in from_amqp(each)}
        fresh = [messages[id_] for id_ in messages.keys() - seen]
        chance.shuffle(fresh)
        try:
            await asyncio.gather(
                *(
                    channel.default_exchange.publish(to_amqp([each]), routing_key=queue.name)
                    for each in fresh
                )
            )
            seen.update(messages)
            for each in together:
                await each.ack()
        except (*aio_pika.exceptions.CONNECTION_EXCEPTIONS, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and asyncio.current_task().cancelling():
                raise
            # The server is away; it delivers to this queue again what was not acknowledged.
            await asyncio.sleep(0.2)
