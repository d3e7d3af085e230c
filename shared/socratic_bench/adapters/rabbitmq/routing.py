"""Where what comes back from a consumer goes: into its queue, now or later, or to the dead."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from itertools import chain

from socratic_bench.adapters.rabbitmq import topology
from socratic_bench.adapters.rabbitmq.lanes import Lanes
from socratic_bench.adapters.rabbitmq.publisher import Outgoing, Publisher
from socratic_bench.adapters.rabbitmq.wire import packed, parcels
from socratic_bench.ports.broker import Message, WorkQueue


class Routing:
    """Publishes messages of one queue, past the exchange that other queues are bound to."""

    def __init__(self, queue: WorkQueue, publisher: Publisher, lanes: Lanes | None) -> None:
        self._queue = queue
        self._publisher = publisher
        self._lanes = lanes

    async def again(self, messages: Sequence[Message], attempts: int, delay: float = 0.0) -> None:
        """Deliver messages of one group again, after `delay` seconds or a little more."""
        await self._publisher.publish(await self._again(messages, attempts, delay))

    async def back(self, parcels: Iterable[tuple[Sequence[Message], int]]) -> None:
        """Put parcels, each with its attempts, back into the queue, as if never delivered."""
        copies = [await self._again(messages, attempts, 0.0) for messages, attempts in parcels]
        await self._publisher.publish(list(chain.from_iterable(copies)))

    async def apart(self, messages: Sequence[Message], attempts: int, deaths: int = 0) -> None:
        """Put messages with the suspects, each on its own; `deaths` of consumers count already."""
        name = topology.suspects_queue(self._queue.name)
        await self._publisher.publish(
            [
                Outgoing("", name, packed([message], attempts=attempts, deaths=deaths))
                for message in messages
            ]
        )

    async def _again(
        self, messages: Sequence[Message], attempts: int, delay: float
    ) -> list[Outgoing]:
        queue, due = self._queue, None
        if self._lanes is not None:
            # A stranger may have put into a lane what has no group, and so no way back.
            await self._lanes.publish_to({message.group for message in messages})
        if delay > 0:
            exchange, key, due = "", topology.delayed_queue(queue.name), time.time() + delay
        elif queue.separate_groups:
            exchange, key = topology.lanes_exchange(queue.name), ""
        else:
            exchange, key = "", queue.name
        return [
            Outgoing(exchange, key, packed(parcel, attempts=attempts, due=due))
            for parcel in parcels(messages, queue.parcel)
        ]

    async def dead(self, messages: Sequence[Message], attempts: int, reason: str) -> None:
        """Put messages with the dead letters."""
        await self._publisher.publish(
            [
                Outgoing(
                    "",
                    topology.dead_letter_queue(self._queue.name),
                    packed([message], attempts=attempts, reason=reason),
                )
                for message in messages
            ]
        )
