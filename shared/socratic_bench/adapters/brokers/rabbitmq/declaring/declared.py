"""The queues and exchanges that a process declares, and declares again if the server lost them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final

import structlog
from aio_pika import ExchangeType
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractExchange
from aio_pika.exceptions import ChannelPreconditionFailed

from socratic_bench.adapters.brokers.rabbitmq.connecting.health import seen
from socratic_bench.adapters.brokers.rabbitmq.connecting.reconnecting import SETTLE_SECONDS
from socratic_bench.adapters.brokers.rabbitmq.declaring import topology
from socratic_bench.errors import BrokerError
from socratic_bench.ports.broker import WorkQueue

log = structlog.get_logger(__name__)

STEP_SECONDS: Final = 15.0
"""Seconds that the server has to declare one queue with its exchange and bindings."""

Step = Callable[[AbstractChannel], Awaitable[None]]


class Declared:
    """The exchange, the queues and the group queues that this process needs."""

    def __init__(self, events: str) -> None:
        self.events = events
        self.queues: dict[str, WorkQueue] = {}
        """By their names on the server."""
        self.group_queues: dict[str, set[str]] = {}
        """The groups that have a group queue, by queue."""
        self._declaring = asyncio.Lock()

    def names(self) -> Iterator[str]:
        """The names of all queues that have to exist on the server."""
        for queue in self.queues.values():
            yield from topology.queues_of(queue)
            yield from (
                topology.group_queue(queue.name, group)
                for group in self.group_queues.get(queue.name, ())
            )

    def exchanges(self) -> Iterator[str]:
        """The names of all exchanges that have to exist on the server."""
        if self.queues:
            yield self.events
        for queue in self.queues.values():
            if queue.separate_groups:
                yield topology.group_queues_exchange(queue.name)

    async def again(self, connection: AbstractConnection) -> None:
        """Declare everything. A queue or exchange that exists with other arguments stays as it is.

        A missing queue is declared a little later. A channel of the server that has not heard of
        the deletion yet would take the new queue for the old one: it would lose messages that it
        sends there, and its consumer would receive nothing, without a word.
        """
        if not self.queues:
            return
        async with self._declaring:
            if not await _are_there(connection, self.names()):
                await asyncio.sleep(SETTLE_SECONDS)
            channel = await _open(connection)
            for step in list(self._steps()):
                try:
                    async with asyncio.timeout(STEP_SECONDS):
                        await step(channel)
                except BrokerError as error:
                    log.warning("not declared again", reason=str(error))
                    channel = await _open(connection)
            async with asyncio.timeout(STEP_SECONDS):
                await channel.close()

    def _steps(self) -> Iterator[Step]:
        for queue in self.queues.values():
            yield partial(declare_queue, events=self.events, queue=queue)
            for group in sorted(self.group_queues.get(queue.name, ())):
                yield partial(declare_group_queue, queue=queue, group=group)


async def declare_events(channel: AbstractChannel, name: str) -> AbstractExchange:
    """Declare the exchange to which every event is published."""
    return await channel.declare_exchange(name, ExchangeType.DIRECT, durable=True)


async def declare_queue(channel: AbstractChannel, events: str, queue: WorkQueue) -> None:
    """Declare a queue, or the exchange of its group queues, with the queues beside it."""
    exchange = await declare_events(channel, events)
    for name in topology.queues_of(queue):
        await _declare(channel, name, topology.QUEUE_ARGUMENTS)
    if queue.separate_groups:
        group_queues = await channel.declare_exchange(
            topology.group_queues_exchange(queue.name), ExchangeType.HEADERS, durable=True
        )
        await group_queues.bind(exchange, routing_key=queue.event_type)
    else:
        declared = await channel.get_queue(queue.name, ensure=False)
        await declared.bind(exchange, routing_key=queue.event_type)


async def declare_group_queue(channel: AbstractChannel, queue: WorkQueue, group: str) -> None:
    """Declare the queue of one group."""
    name = topology.group_queue(queue.name, group)
    try:
        await _declare(channel, name, topology.GROUP_QUEUE_ARGUMENTS)
    except BrokerError:
        # The server has closed the channel. An earlier version may have declared the group queue.
        await channel.reopen()
        await _declare(channel, name, topology.EARLIER_GROUP_QUEUE_ARGUMENTS)
    group_queue = await channel.get_queue(name, ensure=False)
    await group_queue.bind(
        topology.group_queues_exchange(queue.name),
        arguments={"x-match": "all", topology.GROUP_HEADER: group},
    )


async def _are_there(connection: AbstractConnection, names: Iterable[str]) -> bool:
    """Tell whether the server has all of these queues."""
    channel = await _open(connection)
    for name in names:
        async with asyncio.timeout(STEP_SECONDS):
            if await seen(channel, name) is None:
                return False
    async with asyncio.timeout(STEP_SECONDS):
        await channel.close()
    return True


async def _declare(channel: AbstractChannel, name: str, arguments: dict[str, Any]) -> None:
    try:
        await channel.declare_queue(name, durable=True, arguments=arguments)
    except ChannelPreconditionFailed as error:
        raise BrokerError(
            f"queue {name!r} is there already, declared differently, perhaps by another "
            f"version: {error}; use another virtual host, or empty and delete the queue"
        ) from error


async def _open(connection: AbstractConnection) -> AbstractChannel:
    async with asyncio.timeout(STEP_SECONDS):
        return await connection.channel()
