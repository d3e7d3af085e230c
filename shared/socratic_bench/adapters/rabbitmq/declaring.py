"""What a process declares on the server, and declares again where the server has lost it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final

import structlog
from aio_pika import ExchangeType
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractExchange
from aio_pika.exceptions import ChannelPreconditionFailed

from socratic_bench.adapters.rabbitmq import topology
from socratic_bench.adapters.rabbitmq.health import seen
from socratic_bench.adapters.rabbitmq.reconnecting import SETTLE_SECONDS
from socratic_bench.errors import BrokerError
from socratic_bench.ports.broker import WorkQueue

log = structlog.get_logger(__name__)

STEP_SECONDS: Final = 15.0
"""How long the server may take to declare one queue and what hangs on it."""

Step = Callable[[AbstractChannel], Awaitable[None]]


class Declared:
    """The exchange, the queues and the group queues this process needs."""

    def __init__(self, events: str) -> None:
        self.events = events
        self.queues: dict[str, WorkQueue] = {}
        """By their names on the server."""
        self.group_queues: dict[str, set[str]] = {}
        """The groups that have a group queue, of each queue that keeps its groups apart."""
        self._declaring = asyncio.Lock()

    def names(self) -> Iterator[str]:
        """Every queue of the server that there has to be."""
        for queue in self.queues.values():
            yield from topology.queues_of(queue)
            yield from (
                topology.group_queue(queue.name, group)
                for group in self.group_queues.get(queue.name, ())
            )

    def exchanges(self) -> Iterator[str]:
        """Every exchange that there has to be."""
        if self.queues:
            yield self.events
        for queue in self.queues.values():
            if queue.separate_groups:
                yield topology.group_queues_exchange(queue.name)

    async def again(self, connection: AbstractConnection) -> None:
        """Declare everything. What is there already, declared differently, is left as it is.

        A queue that is missing is declared a little later: a channel of the server that has not
        heard yet that a queue was deleted would take a new one for the old, lose what it sends
        there, and hand out nothing of it to its consumer, whom nobody tells.
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
    """What every event is published to."""
    return await channel.declare_exchange(name, ExchangeType.DIRECT, durable=True)


async def declare_queue(channel: AbstractChannel, events: str, queue: WorkQueue) -> None:
    """A queue, or what its group queues hang on, with the queues beside it."""
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
    """The queue of one group."""
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
    """Whether the server has all of these queues."""
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
