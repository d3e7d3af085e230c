"""Routes messages that a consumer returns: to the queue, now or later, or to dead letters."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from itertools import chain

from socratic_bench.adapters.brokers.rabbitmq.declaring import topology
from socratic_bench.adapters.brokers.rabbitmq.declaring.group_queues import GroupQueues
from socratic_bench.adapters.brokers.rabbitmq.publishing.publisher import Outgoing, Publisher
from socratic_bench.adapters.brokers.rabbitmq.publishing.wire import batches, to_amqp
from socratic_bench.events.message import Message
from socratic_bench.ports.broker import WorkQueue


class Routing:
    """Publishes messages to one queue directly, past the exchange of all events."""

    def __init__(
        self, queue: WorkQueue, publisher: Publisher, group_queues: GroupQueues | None
    ) -> None:
        self._queue = queue
        self._publisher = publisher
        self._group_queues = group_queues

    async def republish(
        self, messages: Sequence[Message], attempts: int, delay: float = 0.0
    ) -> None:
        """Deliver messages of one group again, after `delay` seconds or a little more."""
        await self._publisher.publish(await self._copies(messages, attempts, delay))

    async def republish_batches(self, batches: Iterable[tuple[Sequence[Message], int]]) -> None:
        """Publish batches, each with its attempts, to the queue again; no delivery is counted."""
        copies = [await self._copies(messages, attempts, 0.0) for messages, attempts in batches]
        await self._publisher.publish(list(chain.from_iterable(copies)))

    async def to_suspects(
        self, messages: Sequence[Message], attempts: int, deaths: int = 0
    ) -> None:
        """Publish each message to the suspects; `deaths` of its consumers are counted already."""
        name = topology.suspects_queue(self._queue.name)
        await self._publisher.publish(
            [
                Outgoing("", name, to_amqp([message], attempts=attempts, deaths=deaths))
                for message in messages
            ]
        )

    async def _copies(
        self, messages: Sequence[Message], attempts: int, delay: float
    ) -> list[Outgoing]:
        queue, due = self._queue, None
        if self._group_queues is not None:
            # Another program may have put a message without a group, and so without a route, here.
            await self._group_queues.publish_to({message.group for message in messages})
        if delay > 0:
            exchange, key, due = "", topology.delayed_queue(queue.name), time.time() + delay
        elif queue.separate_groups:
            exchange, key = topology.group_queues_exchange(queue.name), ""
        else:
            exchange, key = "", queue.name
        return [
            Outgoing(exchange, key, to_amqp(batch, attempts=attempts, due=due))
            for batch in batches(messages, queue.batch)
        ]

    async def dead_letter(self, messages: Sequence[Message], attempts: int, reason: str) -> None:
        """Publish messages to the dead letters."""
        await self._publisher.publish(
            [
                Outgoing(
                    "",
                    topology.dead_letter_queue(self._queue.name),
                    to_amqp([message], attempts=attempts, reason=reason),
                )
                for message in messages
            ]
        )
