"""The broker on a RabbitMQ server."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from typing import Final, NamedTuple

from aio_pika.abc import AbstractChannel

from socratic_bench.adapters.brokers.batches import SHARES, batches
from socratic_bench.adapters.brokers.declarations import (
    DELIVERY_LIMIT,
    Declarations,
    broker_closed,
    groups_together,
)
from socratic_bench.adapters.brokers.rabbitmq import health, topology
from socratic_bench.adapters.brokers.rabbitmq.connection import (
    ReconnectingConnection,
    namespace_of,
)
from socratic_bench.adapters.brokers.rabbitmq.consumer import (
    HOLD_SECONDS,
    RabbitMQConsumer,
)
from socratic_bench.adapters.brokers.rabbitmq.dead_letters import RabbitDeadLetters
from socratic_bench.adapters.brokers.rabbitmq.declaring import (
    GroupQueues,
    Needed,
    Watch,
    declare_events,
    declare_queue,
)
from socratic_bench.adapters.brokers.rabbitmq.listener import RabbitMQListener
from socratic_bench.adapters.brokers.rabbitmq.publishing import Outgoing, Publisher, Routing
from socratic_bench.adapters.brokers.rabbitmq.wire import BATCH_BYTES, announcement, to_amqp
from socratic_bench.adapters.brokers.receiving import consumer_ended
from socratic_bench.events.codec import Message
from socratic_bench.ports.broker import DeadLetter, WorkQueue

UNUSED_SECONDS: Final = 5.0
"""Seconds that consumers have to leave a group queue before the broker deletes it. A consumer that
still uses the queue declares it again."""


class _Declared(NamedTuple):
    """A queue under its name on the server, with what it takes to use it."""

    work: WorkQueue
    routing: Routing
    groups: GroupQueues | None
    """None for a queue that does not keep its groups apart."""


class RabbitMQBroker:
    """Carries messages over a RabbitMQ server; fulfils the broker port.

    The broker connects on first use and reconnects after each loss: consumers and listeners
    continue, publishers wait. A call that waits too long raises BrokerUnavailable.
    """

    def __init__(
        self,
        url: str,
        *,
        delivery_limit: int = DELIVERY_LIMIT,
        hold_seconds: float = HOLD_SECONDS,
    ) -> None:
        """Describe the broker at `amqp://user:password@host:port/virtual-host`; connect later.

        `?namespace=name` prefixes every declared name, so that several brokers can share a virtual
        host. A consumer that holds a message for `hold_seconds` publishes a copy of it.

        Raises InvalidSettings if `url` is not such an address.
        """
        self._namespace = namespace_of(url)
        self._events = topology.events_exchange(self._namespace)
        self._needed = Needed(self._events)
        self._connection = ReconnectingConnection(url, restore=self._needed.again)
        # D-050: a server short of memory stops reading from connections that publish.
        publishing = ReconnectingConnection(url, restore=self._needed.again)
        self._publisher = Publisher(publishing, publishing.restore)
        self._delivery_limit = delivery_limit
        self._hold_seconds = hold_seconds
        self._declared: Declarations[_Declared] = Declarations()
        self._inspected: dict[str, _Declared] = {}
        """Queues that are there or not, of which a caller wants to know the dead letters."""
        self._consumers: set[RabbitMQConsumer] = set()
        self._listeners: set[RabbitMQListener] = set()
        self._watch = Watch(self._connection, self._needed, self._consumers)
        self._receipts = count(1)

    async def declare(self, queues: Iterable[WorkQueue], broadcasts: Iterable[str] = ()) -> None:
        queues = list(queues)
        for queue in queues:
            self._declared.is_new(queue)
        async with self._connection.channel() as channel:
            await self._connection.in_time(declare_events(channel, self._events))
            for queue in queues:
                await self._declare_queue(channel, queue)
        self._declared.broadcasts.update(broadcasts)
        self._watch.begin()

    async def publish(self, messages: Sequence[Message]) -> None:
        self._connection.check_open()
        by_route: defaultdict[tuple[str, str], list[Message]] = defaultdict(list)
        wanted: defaultdict[str, set[str]] = defaultdict(set)
        group_queues: dict[str, GroupQueues] = {}
        self._declared.check_routable(messages)
        for message in messages:
            apart = False
            for work, _, groups in self._declared.takers(message.type):
                if groups is not None:
                    group_queues[work.name] = groups
                    wanted[work.name].add(message.group)
                    apart = True
            by_route[message.type, message.group if apart else ""].append(message)
        outgoing: list[Outgoing] = []
        for name, groups in group_queues.items():
            await groups.publish_to(wanted[name])
            if new := groups.to_announce(wanted[name]):
                key = topology.announcements(name)
                outgoing.append(Outgoing(self._events, key, announcement(new), mandatory=False))
        for (event_type, group), together in by_route.items():
            mandatory = event_type not in self._declared.broadcasts
            size = min((each.work.batch for each in self._declared.takers(event_type)), default=1)
            shares = SHARES if group else 1
            outgoing += (
                Outgoing(self._events, event_type, to_amqp(batch), mandatory)
                for batch in batches(together, size, most_bytes=BATCH_BYTES, shares=shares)
            )
        await self._publisher.publish(outgoing)

    @asynccontextmanager
    async def consume(
        self, queue: str, *, prefetch: int, prefetch_per_group: int | None = None
    ) -> AsyncIterator[RabbitMQConsumer]:
        declared = self._queue(queue)
        consumer = RabbitMQConsumer(
            self._connection,
            declared.routing,
            declared.work,
            declared.groups,
            self._receipts,
            prefetch=prefetch,
            prefetch_per_group=prefetch_per_group,
            delivery_limit=self._delivery_limit,
            hold_seconds=self._hold_seconds,
        )
        self._consumers.add(consumer)
        try:
            yield consumer
        finally:
            self._consumers.discard(consumer)
            await consumer.end(consumer_ended(queue))

    @asynccontextmanager
    async def listen(self, *event_types: str) -> AsyncIterator[RabbitMQListener]:
        self._connection.check_open()
        broadcasts = self._declared.broadcasts_among(event_types)
        listener = RabbitMQListener(self._connection, broadcasts)
        await listener.open()
        self._listeners.add(listener)
        try:
            yield listener
        finally:
            self._listeners.discard(listener)
            await listener.end(closed=False)

    async def depth(
        self, queue: str, group: str | None = None, *, groups: Collection[str] = ()
    ) -> int | None:
        """Count the batches that are ready on the server and the delayed messages that consumers
        of this process hold. The count leaves out delayed messages that other processes hold. In a
        queue with separate groups it covers `groups` and the groups that this process publishes to
        or serves.

        With a `group`, count the batches that are ready in the group's queue and the messages of
        the group that consumers of this process hold, delayed ones included. The count leaves out
        messages that other processes hold, and ready ones among the delayed or the suspects, since
        the server does not know their group. None for a queue without separate groups.
        """
        work, _, group_queues = self._queue(queue)
        mine = [each for each in self._consumers if each.queue == work]
        if group is not None:
            if group_queues is None:
                return None
            ready = await self._waiting_in([topology.group_queue(work.name, group)])
            return ready + sum(consumer.holds(group) for consumer in mine)
        names = [topology.delayed_queue(work.name), topology.suspects_queue(work.name)]
        if group_queues is None:
            names.append(work.name)
        else:
            known = {*group_queues.known, *groups}
            names += (topology.group_queue(work.name, each) for each in known)
        waiting = await self._waiting_in(names)
        return waiting + sum(consumer.delayed for consumer in mine)

    async def dead_letter_depth(self, queue: str) -> int:
        return await self._dead_letters(queue).depth()

    async def dead_letters(self, queue: str, limit: int = 100) -> Sequence[DeadLetter]:
        return await self._dead_letters(queue).oldest(limit)

    async def redrive(self, queue: str, limit: int | None = None) -> int:
        return await self._dead_letters(queue).redrive(limit)

    async def purge_dead_letters(self, queue: str) -> int:
        return await self._dead_letters(queue).purge()

    async def remove_group(self, queue: str, group: str) -> None:
        work, _, group_queues = self._queue(queue)
        if group_queues is None:
            raise groups_together(queue)
        group_queue = topology.group_queue(work.name, group)
        group_queues.forget(group)
        await health.until_unused(self._connection, group_queue, UNUSED_SECONDS)
        await health.delete(self._connection, group_queue)
        # A channel numbers its messages by queue name: it would lose messages that it sends to a
        # new queue of the same name.
        await self._publisher.start_over()

    async def ping(self) -> None:
        async with self._connection.channel():
            pass

    def problems(self) -> Sequence[str]:
        return list(self._watch.problems().values())

    async def inspect(self, queues: Iterable[WorkQueue]) -> Sequence[str]:
        queues = list(queues)
        for queue in queues:
            self._inspected.setdefault(queue.name, self._described(queue))
        return await health.inspect(self._connection, [self._named(queue) for queue in queues])

    async def close(self) -> None:
        error = broker_closed()
        for consumer in list(self._consumers):
            await consumer.end(error)
        for listener in list(self._listeners):
            await listener.end(closed=True)
        await self._watch.end()
        await self._connection.close()
        await self._publisher.close()

    async def _waiting_in(self, names: Iterable[str]) -> int:
        """Count the messages that are ready in these queues; a missing queue has none."""
        found = await health.look(self._connection, names)
        return sum(seen.messages for seen in found.values() if seen is not None)

    def _named(self, queue: WorkQueue) -> WorkQueue:
        """The queue under its name on the server."""
        return replace(queue, name=topology.named(queue.name, self._namespace))

    def _queue(self, name: str) -> _Declared:
        self._connection.check_open()
        return self._declared.queue(name)

    def _dead_letters(self, queue: str) -> RabbitDeadLetters:
        self._connection.check_open()
        known = queue in self._declared.work or queue not in self._inspected
        work, routing, _ = self._declared.queue(queue) if known else self._inspected[queue]
        return RabbitDeadLetters(self._connection, routing, work, queue)

    async def _declare_queue(self, channel: AbstractChannel, queue: WorkQueue) -> None:
        work = self._named(queue)
        await self._connection.in_time(declare_queue(channel, self._events, work))
        if self._declared.is_new(queue):
            self._needed.queues[work.name] = work
            self._declared.add(queue, self._described(queue))

    def _described(self, queue: WorkQueue) -> _Declared:
        work = self._named(queue)
        group_queues = None
        if queue.separate_groups:
            groups = self._needed.group_queues.setdefault(work.name, set())
            group_queues = GroupQueues(self._connection, work, groups)
        return _Declared(work, Routing(work, self._publisher, group_queues), group_queues)
