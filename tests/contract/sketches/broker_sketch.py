"""A broker over queues of asyncio, as an author writes a new one; a start for it.

The queues stand for a server that carries bytes, takes one message at a time and knows groups. The
rest is that of every broker, and uses the common halves in `socratic_bench.adapters.brokers`.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count, islice
from math import inf
from typing import Any

from socratic_bench.adapters.brokers.batches import SHARES, batches, content_of, parts_of, split
from socratic_bench.adapters.brokers.declarations import (
    DELIVERY_LIMIT,
    Declarations,
    broker_closed,
    groups_together,
)
from socratic_bench.adapters.brokers.receiving import (
    BroadcastListener,
    UnackedConsumer,
    consumer_ended,
)
from socratic_bench.errors import BrokerError
from socratic_bench.events.codec import Message
from socratic_bench.ports.broker import (
    SUSPECT_AFTER,
    Broker,
    DeadLetter,
    Delivery,
    WorkQueue,
    alone_for,
    ended_alone,
)

MOST_BYTES = 100_000
"""A batch of more bytes is full."""


@dataclass(order=True)
class Record:
    """One message of the server, which carries one or several of ours as bytes."""

    place: int
    """Its place in the queue, which it keeps when it comes back."""

    content: bytes = field(compare=False)
    parts: list[Any] = field(compare=False)
    attempts: int = field(compare=False, default=0)
    """The number of its counted retries."""

    redeliveries: int = field(compare=False, default=0)
    suspect: bool = field(compare=False, default=False)


class ServerQueue:
    """One work queue of the server: a queue of asyncio for each group, and one for suspects."""

    def __init__(self, work: WorkQueue) -> None:
        self.work = work
        self.dead: deque[DeadLetter] = deque()
        self.delayed: dict[asyncio.TimerHandle, Record] = {}
        self.consumers: list[SketchConsumer] = []
        self._groups: dict[str, asyncio.PriorityQueue[Record]] = {}
        self._suspects: asyncio.PriorityQueue[Record] = asyncio.PriorityQueue()
        self._waiting: Counter[str] = Counter()
        self._places = count()

    @property
    def depth(self) -> int:
        ready = sum(queue.qsize() for queue in self._groups.values())
        return ready + self._suspects.qsize() + len(self.delayed)

    def depth_of(self, group: str) -> int:
        delayed = (self.messages_of(record) for record in self.delayed.values())
        return self._waiting[group] + sum(m.group == group for each in delayed for m in each)

    def messages_of(self, record: Record) -> list[Message]:
        if len(record.parts) == 3:
            return [Message(record.parts[0], self.work.event_type, record.parts[1], record.content)]
        return split(record.content, self.work.event_type, record.parts)

    def publish(self, messages: Sequence[Message]) -> None:
        """Add new messages, batched by group where the queue keeps its groups apart."""
        groups: dict[str, list[Message]] = {}
        for message in messages:
            groups.setdefault(self._group_of(message), []).append(message)
        for of_group in groups.values():
            for batch in batches(of_group, self.work.batch, most_bytes=MOST_BYTES, shares=SHARES):
                self.add(batch)

    def add(self, messages: Sequence[Message], place: int | None = None, **counts: Any) -> None:
        """Add messages as one record, at a place or as the last one."""
        place = next(self._places) if place is None else place
        record = Record(place, content_of(messages), parts_of(messages), **counts)
        self._put(record, messages)

    def add_later(self, message: Message, place: int, attempts: int, delay: float) -> None:
        record = Record(place, content_of([message]), parts_of([message]), attempts)

        def due() -> None:
            del self.delayed[timer]
            self._put(record, [message])

        timer = asyncio.get_running_loop().call_later(delay, due)
        self.delayed[timer] = record

    def add_back(self, record: Record, messages: Sequence[Message]) -> None:
        """Take unsettled messages back from an ended consumer, which had some of them in hand."""
        again = {"attempts": record.attempts, "redeliveries": record.redeliveries + 1}
        if again["redeliveries"] < SUSPECT_AFTER:
            self.add(messages, record.place, **again, suspect=record.suspect)
        elif record.suspect:
            reason, attempt = ended_alone(again["redeliveries"]), record.attempts + 1
            self.dead.extend(DeadLetter(m, self.work.name, reason, attempt) for m in messages)
        else:
            for message in messages:
                self.add([message], record.place, attempts=record.attempts, suspect=True)

    def take(self, consumer: SketchConsumer) -> Record | None:
        """Return the next record that a consumer may have, from the groups in turn."""
        if self._suspects.qsize():
            return self._taken(self._suspects) if consumer.admits_suspect else None
        for name, queue in list(self._groups.items()):
            if consumer.has_room_for(name):
                del self._groups[name]
                record = self._taken(queue)
                if queue.qsize():
                    self._groups[name] = queue
                return record
        return None

    def remove_group(self, name: str) -> None:
        queue = self._groups.pop(name, None)
        while queue and queue.qsize():
            self._taken(queue)

    def wake(self) -> None:
        for consumer in self.consumers:
            consumer.wake()

    def _put(self, record: Record, messages: Sequence[Message]) -> None:
        self._waiting.update(message.group for message in messages)
        name = self._group_of(messages[0])
        if record.suspect:
            self._suspects.put_nowait(record)
        else:
            self._groups.setdefault(name, asyncio.PriorityQueue()).put_nowait(record)
        self.wake()

    def _taken(self, queue: asyncio.PriorityQueue[Record]) -> Record:
        record = queue.get_nowait()
        self._waiting.subtract(message.group for message in self.messages_of(record))
        return record

    def _group_of(self, message: Message) -> str:
        return message.group if self.work.separate_groups else ""


class SketchConsumer(UnackedConsumer[Record]):
    """Takes a record when it hands out its messages, and holds it until all are settled."""

    def __init__(
        self,
        queue: ServerQueue,
        receipts: Iterator[int],
        *,
        prefetch: int,
        prefetch_per_group: int | None,
        delivery_limit: int,
    ) -> None:
        super().__init__(
            queue.work,
            receipts,
            prefetch=prefetch,
            prefetch_per_group=prefetch_per_group,
            delivery_limit=delivery_limit,
        )
        self._queue = queue
        self._prefetch = prefetch
        self._per_group = (prefetch_per_group if queue.work.separate_groups else None) or inf
        self._in_hand = 0
        self._clearing: asyncio.TimerHandle | None = None

    @property
    def admits_suspect(self) -> bool:
        return self._unacked.seclusion.admits_suspect(self._in_hand)

    def has_room_for(self, group: str) -> bool:
        return self._unacked.held_of(group) < self._per_group

    def holds(self, group: str) -> int:
        return self._unacked.count(group)

    def wake(self) -> None:
        self._receivers.wake_all()

    async def ack(self, deliveries: Iterable[Delivery]) -> None:
        if stale := self._settle(deliveries):
            raise self._not_in_hand(stale[0].message.id, len(stale))

    async def reject(self, delivery: Delivery, reason: str) -> None:
        self._part(delivery)
        self._queue.dead.append(
            DeadLetter(delivery.message, self._queue.work.name, reason, delivery.attempt)
        )
        self._settle([delivery])

    def drain(self) -> None:
        super().drain()
        for batch, parts in self._unacked.take_back():
            record, messages = batch.incoming, [part.delivery.message for part in parts]
            self._unacked.gave_back(batch, parts)
            self._queue.add(
                messages,
                record.place,
                attempts=record.attempts,
                redeliveries=record.redeliveries,
                suspect=record.suspect,
            )

    def end(self, error: BrokerError) -> None:
        """Give everything back; later calls for messages raise `error`."""
        if self._ended:
            return
        self.drain()
        for batch, parts, _ in self._unacked.give_up_since(inf):
            self._queue.add_back(batch.incoming, [part.delivery.message for part in parts])
        self._unacked.lose_all()
        if self._clearing is not None:
            self._clearing.cancel()
        self._end(error)

    async def _deliver_again(self, delivery: Delivery, attempts: int, delay: float) -> None:
        place = self._part(delivery).batch.incoming.place
        if delay > 0:
            self._queue.add_later(delivery.message, place, attempts, delay)
        else:
            self._queue.add([delivery.message], place, attempts=attempts)
        self._settle([delivery])

    def _take(self, limit: int) -> Sequence[Delivery]:
        now = asyncio.get_running_loop().time()
        limit = min(limit, self._prefetch - self._in_hand)
        taken = self._unacked.take(limit, now)
        while len(taken) < limit and self._unacked.admits_others:
            if (record := self._queue.take(self)) is None:
                break
            self._arrive(record, now)
            taken += self._unacked.take(limit - len(taken), now)
        self._in_hand += len(taken)
        return taken

    def _arrive(self, record: Record, now: float) -> None:
        messages, attempt = self._queue.messages_of(record), record.attempts + 1
        if not record.suspect:
            self._unacked.arrive(record, messages, attempt, now)
            return
        alone = alone_for(record.redeliveries)
        self._unacked.suspect(record, messages, attempt, now, alone)
        if alone < inf:
            self._clearing = asyncio.get_running_loop().call_at(now + alone, self._clear)

    def _clear(self) -> None:
        if self._unacked.clear(self._unacked.seclusion.until):
            self._queue.wake()

    def _settle(self, deliveries: Iterable[Delivery]) -> list[Delivery]:
        """Settle deliveries; returns those that were not in hand."""
        asked = list(deliveries)
        _, stale = self._unacked.settle(asked)  # a server gets the acknowledgements here
        self._in_hand -= len(asked) - len(stale)
        self._queue.wake()
        return stale


class SketchBroker(Broker):
    """A Broker over queues of asyncio, in one process."""

    def __init__(self, *, delivery_limit: int = DELIVERY_LIMIT) -> None:
        self._delivery_limit = delivery_limit
        self._declared: Declarations[ServerQueue] = Declarations()
        self._listeners: list[tuple[BroadcastListener, Collection[str]]] = []
        self._receipts = count(1)
        self._closed = False

    async def declare(self, queues: Iterable[WorkQueue], broadcasts: Iterable[str] = ()) -> None:
        self._check_open()
        for queue in queues:
            if self._declared.is_new(queue):
                self._declared.add(queue, ServerQueue(queue))
        self._declared.broadcasts.update(broadcasts)

    async def publish(self, messages: Sequence[Message]) -> None:
        self._check_open()
        self._declared.check_routable(messages)
        for event_type in dict.fromkeys(message.type for message in messages):
            of_type = [message for message in messages if message.type == event_type]
            for queue in self._declared.takers(event_type):
                queue.publish(of_type)
        for listener, event_types in self._listeners:
            listener.hear(message for message in messages if message.type in event_types)

    @asynccontextmanager
    async def consume(
        self, queue: str, *, prefetch: int, prefetch_per_group: int | None = None
    ) -> AsyncIterator[SketchConsumer]:
        own = self._queue(queue)
        consumer = SketchConsumer(
            own,
            self._receipts,
            prefetch=prefetch,
            prefetch_per_group=prefetch_per_group,
            delivery_limit=self._delivery_limit,
        )
        own.consumers.append(consumer)
        try:
            yield consumer
        finally:
            own.consumers.remove(consumer)
            consumer.end(consumer_ended(queue))

    @asynccontextmanager
    async def listen(self, *event_types: str) -> AsyncIterator[BroadcastListener]:
        self._check_open()
        entry = BroadcastListener(), self._declared.broadcasts_among(event_types)
        self._listeners.append(entry)
        try:
            yield entry[0]
        finally:
            self._listeners.remove(entry)
            entry[0].stop(closed=False)

    async def depth(
        self, queue: str, group: str | None = None, *, groups: Collection[str] = ()
    ) -> int:
        own = self._queue(queue)
        if group is None:
            return own.depth
        return own.depth_of(group) + sum(consumer.holds(group) for consumer in own.consumers)

    async def dead_letter_depth(self, queue: str) -> int:
        return len(self._queue(queue).dead)

    async def dead_letters(self, queue: str, limit: int = 100) -> Sequence[DeadLetter]:
        return list(islice(self._queue(queue).dead, limit))

    async def redrive(self, queue: str, limit: int | None = None) -> int:
        own = self._queue(queue)
        number = len(own.dead) if limit is None else min(limit, len(own.dead))
        for _ in range(number):
            own.add([own.dead.popleft().message])
        return number

    async def purge_dead_letters(self, queue: str) -> int:
        dead = self._queue(queue).dead
        number = len(dead)
        dead.clear()
        return number

    async def remove_group(self, queue: str, group: str) -> None:
        own = self._queue(queue)
        if not own.work.separate_groups:
            raise groups_together(queue)
        own.remove_group(group)

    async def ping(self) -> None:
        self._check_open()

    def problems(self) -> Sequence[str]:
        return []

    async def inspect(self, queues: Iterable[WorkQueue]) -> Sequence[str]:
        await self.declare(queues)
        return []

    async def close(self) -> None:
        self._closed = True
        for queue in self._declared.queues():
            for timer in queue.delayed:
                timer.cancel()
            for consumer in queue.consumers:
                consumer.end(broker_closed())
        for listener, _ in self._listeners:
            listener.stop(closed=True)

    def _check_open(self) -> None:
        if self._closed:
            raise broker_closed()

    def _queue(self, name: str) -> ServerQueue:
        self._check_open()
        return self._declared.queue(name)
