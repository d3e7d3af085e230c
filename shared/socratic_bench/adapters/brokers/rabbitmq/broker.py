"""The broker on a RabbitMQ server."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from typing import Final

from aio_pika.abc import AbstractChannel

from socratic_bench.adapters.brokers.rabbitmq import health, topology
from socratic_bench.adapters.brokers.rabbitmq.connection import (
    ReconnectingConnection,
    namespace_of,
)
from socratic_bench.adapters.brokers.rabbitmq.consumer import (
    HOLD_SECONDS,
    RabbitMQConsumer,
)
from socratic_bench.adapters.brokers.rabbitmq.dead_letters import DeadLetters
from socratic_bench.adapters.brokers.rabbitmq.declaring import (
    Declared,
    GroupQueues,
    Watch,
    declare_events,
    declare_queue,
)
from socratic_bench.adapters.brokers.rabbitmq.listener import RabbitMQListener
from socratic_bench.adapters.brokers.rabbitmq.publishing import Outgoing, Publisher, Routing
from socratic_bench.adapters.brokers.rabbitmq.wire import announcement, batches, to_amqp
from socratic_bench.errors import BrokerClosed, BrokerError, UnroutableMessage
from socratic_bench.events.message import Message
from socratic_bench.ports.broker import DeadLetter, WorkQueue

UNUSED_SECONDS: Final = 5.0
"""Seconds that consumers have to leave a group queue before the broker deletes it. A consumer that
still uses the queue declares it again."""

SHARES: Final = 5
"""The messages of one group in one publish are split into at least this many batches, so that
several consumers can share them."""

DELIVERY_LIMIT: Final = 20
"""Attempts after which the broker dead-letters a message."""


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
        self._declared = Declared(self._events)
        self._connection = ReconnectingConnection(url, restore=self._declared.again)
        # D-050: a server short of memory stops reading from connections that publish.
        publishing = ReconnectingConnection(url, restore=self._declared.again)
        self._publisher = Publisher(publishing, publishing.restore)
        self._delivery_limit = delivery_limit
        self._hold_seconds = hold_seconds
        self._queues: dict[str, WorkQueue] = {}
        self._takers: defaultdict[str, list[WorkQueue]] = defaultdict(list)
        self._broadcasts: set[str] = set()
        self._group_queues: dict[str, GroupQueues] = {}
        self._routing: dict[str, Routing] = {}
        self._consumers: set[RabbitMQConsumer] = set()
        self._listeners: set[RabbitMQListener] = set()
        self._watch = Watch(self._connection, self._declared, self._consumers)
        self._receipts = count(1)

    async def declare(self, queues: Iterable[WorkQueue], broadcasts: Iterable[str] = ()) -> None:
        named = {queue.name: self._named(queue) for queue in queues}
        for label, queue in named.items():
            known = self._queues.get(label, queue)
            if known != queue:
                raise BrokerError(
                    f"queue {label!r} takes type {known.event_type!r} and cannot be declared "
                    f"for {queue.event_type!r} too; give one of them another name"
                )
        async with self._connection.channel() as channel:
            await self._connection.in_time(declare_events(channel, self._events))
            for label, queue in named.items():
                await self._declare_queue(channel, label, queue)
        self._broadcasts.update(broadcasts)
        self._watch.begin()

    async def publish(self, messages: Sequence[Message]) -> None:
        self._check_open()
        by_route: defaultdict[tuple[str, str], list[Message]] = defaultdict(list)
        groups: defaultdict[str, set[str]] = defaultdict(set)
        for message in messages:
            takers = self._takers.get(message.type, ())
            if not takers and message.type not in self._broadcasts:
                raise UnroutableMessage(
                    f"message {message.id!r}: no queue takes type {message.type!r} and it is not "
                    "a broadcast; declare one or the other before publishing"
                )
            apart = False
            for queue in takers:
                if queue.separate_groups:
                    groups[queue.name].add(message.group)
                    apart = True
            by_route[message.type, message.group if apart else ""].append(message)
        outgoing: list[Outgoing] = []
        for name, wanted in groups.items():
            await self._group_queues[name].publish_to(wanted)
            if new := self._group_queues[name].to_announce(wanted):
                key = topology.announcements(name)
                outgoing.append(Outgoing(self._events, key, announcement(new), mandatory=False))
        for (event_type, group), together in by_route.items():
            mandatory = event_type not in self._broadcasts
            size = min((queue.batch for queue in self._takers.get(event_type, ())), default=1)
            if group:
                size = min(size, math.ceil(len(together) / SHARES))
            outgoing += (
                Outgoing(self._events, event_type, to_amqp(batch), mandatory)
                for batch in batches(together, size)
            )
        await self._publisher.publish(outgoing)

    @asynccontextmanager
    async def consume(
        self, queue: str, *, prefetch: int, prefetch_per_group: int | None = None
    ) -> AsyncIterator[RabbitMQConsumer]:
        declared = self._queue(queue)
        consumer = RabbitMQConsumer(
            self._connection,
            self._routing[declared.name],
            declared,
            self._group_queues.get(declared.name),
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
            await consumer.end(
                BrokerError(f"queue {queue!r}: this consumer has ended; open another one")
            )

    @asynccontextmanager
    async def listen(self, *event_types: str) -> AsyncIterator[RabbitMQListener]:
        self._check_open()
        for event_type in event_types:
            if event_type not in self._broadcasts:
                raise BrokerError(
                    f"type {event_type!r} was not declared as a broadcast; declare it first"
                )
        listener = RabbitMQListener(self._connection, tuple(dict.fromkeys(event_types)))
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
        declared = self._queue(queue)
        mine = [each for each in self._consumers if each.queue == declared]
        if group is not None:
            if not declared.separate_groups:
                return None
            ready = await self._waiting_in([topology.group_queue(declared.name, group)])
            return ready + sum(consumer.holds(group) for consumer in mine)
        names = [topology.delayed_queue(declared.name), topology.suspects_queue(declared.name)]
        if declared.separate_groups:
            known = self._group_queues[declared.name].known
            names += (topology.group_queue(declared.name, each) for each in {*known, *groups})
        else:
            names.append(declared.name)
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
        declared = self._queue(queue)
        if not declared.separate_groups:
            raise BrokerError(f"queue {queue!r} does not keep its groups apart")
        group_queue = topology.group_queue(declared.name, group)
        self._group_queues[declared.name].forget(group)
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
        return await health.inspect(self._connection, [self._named(queue) for queue in queues])

    async def close(self) -> None:
        error = BrokerClosed("the broker was closed; open another one")
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

    def _check_open(self) -> None:
        if self._connection.closed:
            raise BrokerClosed("the broker was closed; open another one")

    def _named(self, queue: WorkQueue) -> WorkQueue:
        """The queue under its name on the server."""
        return replace(queue, name=topology.named(queue.name, self._namespace))

    def _queue(self, name: str) -> WorkQueue:
        self._check_open()
        try:
            return self._queues[name]
        except KeyError:
            raise BrokerError(f"queue {name!r} is not declared; declare it first") from None

    def _dead_letters(self, queue: str) -> DeadLetters:
        declared = self._queue(queue)
        routing = self._routing[declared.name]
        return DeadLetters(self._connection, routing, declared, queue)

    async def _declare_queue(self, channel: AbstractChannel, label: str, queue: WorkQueue) -> None:
        await self._connection.in_time(declare_queue(channel, self._events, queue))
        if label not in self._queues:
            self._queues[label] = queue
            self._takers[queue.event_type].append(queue)
            self._declared.queues[queue.name] = queue
            if queue.separate_groups:
                groups = self._declared.group_queues.setdefault(queue.name, set())
                self._group_queues[queue.name] = GroupQueues(self._connection, queue, groups)
            group_queues = self._group_queues.get(queue.name)
            self._routing[queue.name] = Routing(queue, self._publisher, group_queues)
