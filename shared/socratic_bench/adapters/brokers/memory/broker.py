"""The broker in this process, for embedded mode and unit tests.

It keeps all promises of the port while the process lives: it holds encoded messages, limits the
waiting ones, and redelivers unsettled ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count, groupby
from operator import attrgetter

from socratic_bench.adapters.brokers.declarations import DELIVERY_LIMIT, Declarations, broker_closed
from socratic_bench.adapters.brokers.memory.consumer import MemoryConsumer
from socratic_bench.adapters.brokers.memory.queue import MemoryQueue
from socratic_bench.adapters.brokers.receiving import (
    LISTENER_BUFFER,
    BroadcastListener,
    consumer_ended,
)
from socratic_bench.concurrency.waiting_line import WaitingLine
from socratic_bench.events.codec import Message
from socratic_bench.ports.broker import DeadLetter, WorkQueue


@dataclass(slots=True)
class _Route:
    """The queues and listeners of one type, and the publishers that wait for room."""

    queues: list[MemoryQueue] = field(default_factory=list)
    listeners: list[BroadcastListener] = field(default_factory=list)
    publishers: WaitingLine = field(default_factory=WaitingLine)

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
        delivery_limit: int = DELIVERY_LIMIT,
        listener_buffer: int = LISTENER_BUFFER,
    ) -> None:
        self._max_waiting = max_waiting
        self._delivery_limit = delivery_limit
        self._listener_buffer = listener_buffer
        self._routes: defaultdict[str, _Route] = defaultdict(_Route)
        self._declared: Declarations[MemoryQueue] = Declarations()
        self._consumers: set[MemoryConsumer] = set()
        self._receipts = count(1)
        self._closed = False

    @property
    def outstanding(self) -> int:
        """The number of waiting, delayed and unsettled messages in all work queues."""
        return sum(map(self.outstanding_in, self._declared.work))

    def outstanding_in(self, queue: str) -> int:
        """Return the number of these messages in one work queue."""
        consumers = (each for each in self._consumers if each.queue == queue)
        return self._declared.queue(queue).depth + sum(consumer.in_hand for consumer in consumers)

    async def declare(self, queues: Iterable[WorkQueue], broadcasts: Iterable[str] = ()) -> None:
        self._check_open()
        for queue in queues:
            self._declare_queue(queue)
        self._declared.broadcasts.update(broadcasts)

    async def publish(self, messages: Sequence[Message]) -> None:
        self._check_open()
        self._declared.check_routable(messages)
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
            consumer.end(consumer_ended(queue))

    @asynccontextmanager
    async def listen(self, *event_types: str) -> AsyncIterator[BroadcastListener]:
        self._check_open()
        routes = [self._routes[each] for each in self._declared.broadcasts_among(event_types)]
        listener = BroadcastListener(self._listener_buffer)
        for route in routes:
            route.listeners.append(listener)
        try:
            yield listener
        finally:
            for route in routes:
                route.listeners.remove(listener)
            listener.stop(closed=False)

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
        await self.declare(queues)
        return []

    async def close(self) -> None:
        self._closed = True
        for consumer in self._consumers:
            consumer.end(broker_closed())
        for queue in self._declared.queues():
            queue.close()
        for route in self._routes.values():
            route.publishers.wake_all()
            for listener in route.listeners:
                listener.stop(closed=True)

    def _check_open(self) -> None:
        if self._closed:
            raise broker_closed()

    def _declare_queue(self, queue: WorkQueue) -> None:
        if not self._declared.is_new(queue):
            return
        route = self._routes[queue.event_type]
        own = MemoryQueue(queue.name, max_waiting=self._max_waiting, publishers=route.publishers)
        self._declared.add(queue, own)
        route.queues.append(own)

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
        return self._declared.queue(name)
