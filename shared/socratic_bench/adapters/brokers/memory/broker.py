"""The broker in this process, for embedded mode and unit tests.

It keeps all promises of the port while the process lives: it holds encoded messages, limits the
waiting ones, and redelivers unsettled ones.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count, groupby
from operator import attrgetter

from socratic_bench.adapters.brokers.memory.consumer import MemoryConsumer
from socratic_bench.adapters.brokers.memory.listener import MemoryListener
from socratic_bench.adapters.brokers.memory.queue import MemoryQueue
from socratic_bench.concurrency.waiting_line import WaitingLine
from socratic_bench.errors import BrokerClosed, BrokerError, UnroutableMessage
from socratic_bench.events.message import Message
from socratic_bench.ports.broker import DeadLetter, WorkQueue


@dataclass(slots=True)
class _Route:
    """The queues and listeners of one type, and the publishers that wait for room."""

    queues: list[MemoryQueue] = field(default_factory=list)
    listeners: list[MemoryListener] = field(default_factory=list)
    publishers: WaitingLine = field(default_factory=WaitingLine)
    is_broadcast: bool = False

    def room(self, wanted: int) -> int:
        """Return how many of `wanted` messages fit into all of its queues."""
        return min((queue.room for queue in self.queues), default=wanted)

    def put(self, messages: Sequence[Message]) -> None:
        for queue in self.queues:
            queue.put(messages)
        for listener in self.listeners:
            listener.hear(messages)


class MemoryBroker:
    """Carries messages within this process and one event loop. Keeps the port's promises.

    A queue holds at most `max_waiting` messages beside returned ones; a message has
    `delivery_limit` attempts, and becomes a dead letter after the last. A listener keeps the newest
    `listener_buffer` messages until the caller takes them.
    """

    def __init__(
        self,
        *,
        max_waiting: int = 10_000,
        delivery_limit: int = 20,
        listener_buffer: int = 1_000,
    ) -> None:
        self._max_waiting = max_waiting
        self._delivery_limit = delivery_limit
        self._listener_buffer = listener_buffer
        self._routes: dict[str, _Route] = {}
        self._queues: dict[str, MemoryQueue] = {}
        self._declared: dict[str, WorkQueue] = {}
        self._consumers: set[MemoryConsumer] = set()
        self._receipts = count(1)
        self._closed = False

    @property
    def outstanding(self) -> int:
        """The number of waiting, delayed and unsettled messages in all work queues."""
        return sum(map(self.outstanding_in, self._queues))

    def outstanding_in(self, queue: str) -> int:
        """Return the number of these messages in one work queue."""
        consumers = (each for each in self._consumers if each.queue == queue)
        return self._queues[queue].depth + sum(consumer.in_hand for consumer in consumers)

    async def declare(self, queues: Iterable[WorkQueue], broadcasts: Iterable[str] = ()) -> None:
        self._check_open()
        for queue in queues:
            self._declare_queue(queue)
        for event_type in broadcasts:
            self._routes.setdefault(event_type, _Route()).is_broadcast = True

    async def publish(self, messages: Sequence[Message]) -> None:
        self._check_open()
        for message in messages:
            if message.type not in self._routes:
                raise UnroutableMessage(
                    f"message {message.id!r}: no queue takes type {message.type!r} and it is not "
                    "a broadcast; declare one or the other before publishing"
                )
        for event_type, run in groupby(messages, key=attrgetter("type")):
            await self._publish_to(self._routes[event_type], list(run))

    @asynccontextmanager
    async def consume(
        self, queue: str, *, prefetch: int, prefetch_per_group: int | None = None
    ) -> AsyncIterator[MemoryConsumer]:
        consumer = MemoryConsumer(
            self._queue(queue),
            self._receipts,
            prefetch=prefetch,
            prefetch_per_group=prefetch_per_group,
            delivery_limit=self._delivery_limit,
        )
        self._consumers.add(consumer)
        try:
            yield consumer
        finally:
            self._consumers.discard(consumer)
            consumer.end(BrokerError)

    @asynccontextmanager
    async def listen(self, *event_types: str) -> AsyncIterator[MemoryListener]:
        self._check_open()
        routes = [self._broadcast_route(event_type) for event_type in dict.fromkeys(event_types)]
        listener = MemoryListener(self._listener_buffer)
        for route in routes:
            route.listeners.append(listener)
        try:
            yield listener
        finally:
            for route in routes:
                route.listeners.remove(listener)
            listener.end(closed=False)

    async def depth(
        self, queue: str, group: str | None = None, *, groups: Collection[str] = ()
    ) -> int:
        """Count the messages of all groups, or of one `group`; this process holds them all."""
        asked = self._queue(queue)
        if group is None:
            return asked.depth
        held = sum(consumer.holds(asked, group) for consumer in self._consumers)
        return asked.depth_of(group) + held

    async def dead_letter_depth(self, queue: str) -> int:
        return self._queue(queue).dead

    async def dead_letters(self, queue: str, limit: int = 100) -> Sequence[DeadLetter]:
        return self._queue(queue).dead_letters(limit)

    async def redrive(self, queue: str, limit: int | None = None) -> int:
        return self._queue(queue).redrive(limit)

    async def purge_dead_letters(self, queue: str) -> int:
        return self._queue(queue).purge_dead_letters()

    async def remove_group(self, queue: str, group: str) -> None:
        self._queue(queue).remove_group(group)

    async def ping(self) -> None:
        self._check_open()

    def problems(self) -> Sequence[str]:
        """Return nothing: no queue can be missing."""
        return []

    async def inspect(self, queues: Iterable[WorkQueue]) -> Sequence[str]:
        """Return nothing: no queue can be missing."""
        return []

    async def close(self) -> None:
        self._closed = True
        for consumer in self._consumers:
            consumer.end(BrokerClosed)
        for queue in self._queues.values():
            queue.close()
        for route in self._routes.values():
            route.publishers.wake_all()
            for listener in route.listeners:
                listener.end(closed=True)

    def _check_open(self) -> None:
        if self._closed:
            raise BrokerClosed("the broker was closed; open another one")

    def _declare_queue(self, queue: WorkQueue) -> None:
        declared = self._declared.setdefault(queue.name, queue)
        if declared != queue:
            raise BrokerError(
                f"queue {queue.name!r} takes type {declared.event_type!r} and cannot be declared "
                f"for {queue.event_type!r} too; give one of them another name"
            )
        if queue.name not in self._queues:
            route = self._routes.setdefault(queue.event_type, _Route())
            self._queues[queue.name] = MemoryQueue(
                queue.name,
                max_waiting=self._max_waiting,
                publishers=route.publishers,
            )
            route.queues.append(self._queues[queue.name])

    async def _publish_to(self, route: _Route, messages: Sequence[Message]) -> None:
        """Put messages into all queues of a route at once, as many at a time as fit."""
        position = 0
        must_wait = len(route.publishers) > 0
        while position < len(messages):
            room = route.room(len(messages) - position)
            if must_wait or room == 0:
                must_wait = False
                await route.publishers.wait()
                self._check_open()
                continue
            route.put(messages[position : position + room])
            position += room
        if route.room(1):
            route.publishers.wake_one()

    def _queue(self, name: str) -> MemoryQueue:
        self._check_open()
        try:
            return self._queues[name]
        except KeyError:
            raise BrokerError(f"queue {name!r} is not declared; declare it first") from None

    def _broadcast_route(self, event_type: str) -> _Route:
        route = self._routes.get(event_type)
        if route is None or not route.is_broadcast:
            raise BrokerError(
                f"type {event_type!r} is not a broadcast; declare it as one before listening to it"
            )
        return route
