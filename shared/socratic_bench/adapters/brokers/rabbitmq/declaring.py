"""The queues and exchanges that a process declares, and declares again if the server lost them.

AMQP cannot list queues, and this process keeps no list of the groups of a queue. The caller gives a
consumer its groups; the consumer also serves the groups that this process has published to. A
publisher announces its groups, so that the caller of a consumer that does not serve one lists the
groups at once. Publishers and consumers declare a group's queue before they use it; declaring an
existing queue does nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from math import inf
from typing import Any, Final, Protocol

import structlog
from aio_pika import ExchangeType
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractExchange
from aio_pika.exceptions import ChannelNotFoundEntity, ChannelPreconditionFailed

from socratic_bench.adapters.brokers.rabbitmq import health, topology
from socratic_bench.adapters.brokers.rabbitmq.connection import (
    SETTLE_SECONDS,
    ReconnectingConnection,
    refused,
)
from socratic_bench.adapters.brokers.rabbitmq.health import QueueReport, seen
from socratic_bench.concurrency.deadlines import cancelled
from socratic_bench.errors import BrokerClosed, BrokerError
from socratic_bench.ports.broker import WorkQueue

log = structlog.get_logger(__name__)

STEP_SECONDS: Final = 15.0
"""Seconds that the server has to declare one queue with its exchange and bindings."""

Step = Callable[[AbstractChannel], Awaitable[None]]


class Needed:
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
        if "inequivalent" not in str(error):  # a limit of queues, a type that the server lacks
            raise refused(f"queue {name!r}", str(error)) from error
        raise BrokerError(
            f"queue {name!r} is there already, declared differently, perhaps by another "
            f"version: {error}; use another virtual host, or empty and delete the queue"
        ) from error


async def _open(connection: AbstractConnection) -> AbstractChannel:
    async with asyncio.timeout(STEP_SECONDS):
        return await connection.channel()


ANNOUNCE_SECONDS: Final = 1.0
"""Seconds after which a publisher announces a group again: its consumers may have left it since."""


class GroupQueues:
    """The groups of one queue, and the queue of each."""

    def __init__(
        self, connection: ReconnectingConnection, queue: WorkQueue, declared: set[str]
    ) -> None:
        """`declared` collects the groups whose queues this process has declared."""
        self._connection = connection
        self._queue = queue
        self._declared = declared
        self._published: set[str] = set()
        self._announced_at: dict[str, float] = {}
        self._listeners: list[Callable[[], None]] = []
        self._ensuring = asyncio.Lock()

    @property
    def published(self) -> Collection[str]:
        """The groups that this process has published to."""
        return self._published

    @property
    def known(self) -> Collection[str]:
        """The groups whose queues this process has declared."""
        return self._declared

    def on_news(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` for each new group; returns a function that ends the calls."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def publish_to(self, groups: Collection[str]) -> None:
        """Declare the queues of these groups, and have this process serve them too.

        Raises BrokerUnavailable, BrokerClosed, and BrokerError if a group queue exists with other
        arguments.
        """
        if self._published.issuperset(groups):
            return
        await self.ensure(groups)
        self._published.update(groups)
        for listener in list(self._listeners):
            listener()

    def to_announce(self, groups: Collection[str]) -> list[str]:
        """Return those of these groups that this process did not announce lately; it does now."""
        now = asyncio.get_running_loop().time()
        due = [
            group
            for group in sorted(groups)
            if self._announced_at.get(group, -inf) <= now - ANNOUNCE_SECONDS
        ]
        self._announced_at.update(dict.fromkeys(due, now))
        return due

    def forget(self, group: str) -> None:
        """Forget a group: it was removed."""
        self._announced_at.pop(group, None)
        self._declared.discard(group)
        self._published.discard(group)

    async def ensure(self, groups: Collection[str]) -> None:
        """Declare the queues of these groups. Raises as `publish_to` does."""
        # One at a time: of two concurrent declarations the server answers one before the queue is
        # usable.
        async with self._ensuring:
            missing = set(groups) - self._declared
            if not missing:
                return
            async with self._connection.channel() as channel:
                for group in sorted(missing):
                    await self._connection.in_time(declare_group_queue(channel, self._queue, group))
                    self._declared.add(group)


WATCH_SECONDS: Final = 5.0
"""Seconds between two looks."""

PROBE_SECONDS: Final = 60.0
"""Seconds between two checks of the leaders of dead-letter queues, which have no consumers."""


class WatchedConsumer(Protocol):
    """A consumer whose queues are watched."""

    def compare(self, found: Mapping[str, QueueReport | None]) -> None:
        """Notice queues that it consumes and for which the server shows no consumer."""
        ...

    def problems(self) -> dict[str, str]:
        """Problems of its queues, by the queue's name on the server."""
        ...


class Watch:
    """Finds missing queues and exchanges, and declares them again."""

    def __init__(
        self,
        connection: ReconnectingConnection,
        needed: Needed,
        consumers: Collection[WatchedConsumer],
    ) -> None:
        self._connection = connection
        self._needed = needed
        self._consumers = consumers
        self._missing: list[str] = []
        self._leaderless: dict[str, float] = {}
        """The dead-letter queues without a leader, and the time of the first sight."""
        self._probe_at = 0.0
        self._looking: asyncio.Task[None] | None = None
        self._ended = False

    def begin(self) -> None:
        """Start watching. A second call does nothing."""
        if self._looking is None:
            self._looking = asyncio.create_task(self._look_repeatedly(), name="watch")

    async def end(self) -> None:
        """Stop watching."""
        self._ended = True
        if self._looking is not None:
            await cancelled(self._looking)

    def problems(self) -> dict[str, str]:
        """Problems by the name of the queue or exchange."""
        found = {name: f"{name!r} is missing on the server" for name in self._missing}
        found |= {name: health.no_leader(name) for name in self._leaderless}
        for consumer in self._consumers:
            found |= consumer.problems()
        return found

    async def look(self) -> None:
        """Look once. Raises BrokerUnavailable and BrokerClosed."""
        found = await health.look(self._connection, self._needed.names())
        missing = [name for name, seen in found.items() if seen is None]
        missing += [name for name in self._needed.exchanges() if not await self._is_there(name)]
        self._missing = missing
        for consumer in list(self._consumers):
            consumer.compare(found)
        await self._probe_dead_letters()
        if missing:
            log.warning("declaring missing queues again", names=missing)
            await self._connection.restore()
            self._missing = []

    async def _probe_dead_letters(self) -> None:
        now = asyncio.get_running_loop().time()
        if now < self._probe_at:
            return
        self._probe_at = now + PROBE_SECONDS
        names = [topology.dead_letter_queue(name) for name in self._needed.queues]
        leaderless = await health.leaderless(self._connection, names)
        self._leaderless = {name: self._leaderless.get(name, now) for name in leaderless}
        lost = [
            at for at, since in self._leaderless.items() if now - since >= health.REPLACE_SECONDS
        ]
        for name in lost:
            # D-044: without dead letters, rejected messages would circulate for ever.
            await self._replace(name)

    async def _replace(self, name: str) -> None:
        """Replace the queue by an empty one; the server refuses while other nodes may hold it."""
        try:
            await health.delete(self._connection, name)
        except BrokerClosed:
            raise
        except BrokerError as error:
            log.warning("queue without a leader not replaced", queue=name, reason=str(error))
            return
        log.error(health.REPLACED, queue=name)
        del self._leaderless[name]
        await self._connection.restore()

    async def _look_repeatedly(self) -> None:
        # A cancellation may get lost in the driver.
        while not self._ended:
            await asyncio.sleep(WATCH_SECONDS)
            try:
                await self.look()
            except BrokerClosed:
                return
            except Exception as error:
                # This task alone watches the server, so it continues after any error.
                bug = None if isinstance(error, BrokerError) else error
                log.warning("cannot look at the server", reason=str(error), exc_info=bug)

    async def _is_there(self, exchange: str) -> bool:
        async with self._connection.channel() as channel:
            return await self._connection.in_time(_exists(channel, exchange))


async def _exists(channel: AbstractChannel, exchange: str) -> bool:
    try:
        await channel.get_exchange(exchange)
    except ChannelNotFoundEntity:
        return False
    return True
