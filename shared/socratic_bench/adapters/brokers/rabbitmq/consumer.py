"""One consumer of a queue: hands out the messages of its intake, and settles them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from aio_pika.abc import AbstractIncomingMessage

from socratic_bench.adapters.brokers.rabbitmq.connection import ReconnectingConnection
from socratic_bench.adapters.brokers.rabbitmq.declaring import GroupQueues
from socratic_bench.adapters.brokers.rabbitmq.delayed import DelayedMessages
from socratic_bench.adapters.brokers.rabbitmq.health import Seen
from socratic_bench.adapters.brokers.rabbitmq.intake import Intake
from socratic_bench.adapters.brokers.rabbitmq.publishing import Routing
from socratic_bench.adapters.brokers.rabbitmq.settling import Settling
from socratic_bench.adapters.brokers.receiving import UnackedConsumer
from socratic_bench.errors import (
    BrokerError,
)
from socratic_bench.ports.broker import Delivery, WorkQueue

HOLD_SECONDS: Final = 900.0
"""Seconds that a consumer holds an unsettled message before it publishes a copy for later.

RabbitMQ closes the channel of a consumer that leaves a message unsettled for half an hour."""


class RabbitMQConsumer(UnackedConsumer[AbstractIncomingMessage]):
    """Consumes a queue, or all its group queues; fulfils the broker port."""

    def __init__(
        self,
        connection: ReconnectingConnection,
        routing: Routing,
        queue: WorkQueue,
        group_queues: GroupQueues | None,
        receipts: Iterator[int],
        *,
        prefetch: int,
        prefetch_per_group: int | None,
        delivery_limit: int,
        hold_seconds: float,
    ) -> None:
        super().__init__(
            queue,
            receipts,
            prefetch=prefetch,
            prefetch_per_group=prefetch_per_group,
            delivery_limit=delivery_limit,
        )
        self.queue = queue
        self._routing = routing
        self._settling = Settling(self._unacked)
        self._delayed = DelayedMessages(connection, routing, queue, longest_hold=hold_seconds)
        self._intake = Intake(
            connection,
            routing,
            queue,
            group_queues,
            self._unacked,
            self._settling,
            prefetch=prefetch,
            per_group=prefetch if prefetch_per_group is None else prefetch_per_group,
            hold_seconds=hold_seconds,
            on_broken=self._end,
        )

    @property
    def delayed(self) -> int:
        """How many delayed messages the consumer holds until they are due."""
        return len(self._delayed)

    def holds(self, group: str) -> int:
        """Count the messages of a group that the consumer holds: unsettled, waiting, delayed."""
        return self._unacked.count(group) + self._delayed.count(group)

    def serve(self, groups: Collection[str]) -> None:
        self._intake.serve(groups)

    async def heard_of_group(self) -> None:
        await self._intake.heard_of_group()

    def compare(self, found: Mapping[str, Seen | None]) -> None:
        """Notice queues that this consumer consumes and for which the server shows no consumer."""
        self._intake.compare(found)
        self._delayed.compare(found)

    def problems(self) -> dict[str, str]:
        """Problems of the consumer's queues, by the queue's name on the server."""
        return self._intake.problems() | self._delayed.problems()

    async def ack(self, deliveries: Iterable[Delivery]) -> None:
        deliveries = list(deliveries)
        done, stale = self._unacked.settle(deliveries)
        await self._settling.finish(done)
        if stale:
            raise self._not_in_hand(stale[0].message.id, len(stale))

    async def reject(self, delivery: Delivery, reason: str) -> None:
        await self._settle_by(
            delivery,
            lambda: self._routing.dead_letter([delivery.message], delivery.attempt, reason),
        )

    def drain(self) -> None:
        super().drain()
        self._intake.drain()

    async def end(self, error: BrokerError) -> None:
        """Return unsettled messages to the queue; later calls for messages raise `error`."""
        self._end(error)
        try:
            await self._intake.end()
        finally:
            await self._delayed.end()
            self._receivers.wake_all()

    def _take(self, limit: int) -> Sequence[Delivery]:
        if not self._intake.complete:
            return []
        taken = self._unacked.take(limit, asyncio.get_running_loop().time())
        if taken and taken[0].suspect:
            self._intake.look_after_suspect()
        return taken

    async def _deliver_again(self, delivery: Delivery, attempts: int, delay: float) -> None:
        await self._settle_by(
            delivery,
            lambda: self._routing.republish([delivery.message], attempts, delay),
            # The server redelivers a batch that was given up, unchanged.
            needless=self._part(delivery).batch.given_up,
        )

    async def _settle_by(
        self, delivery: Delivery, publish: Callable[[], Awaitable[None]], *, needless: bool = False
    ) -> None:
        """Publish a copy elsewhere, then release the delivery.

        If the publish fails or is cancelled, the copy may be missing: then the whole batch goes
        back to the queue.
        """
        part = self._part(delivery)
        try:
            if not needless:
                await publish()
        except BaseException:
            part.batch.to_return = True
            raise
        finally:
            done, stale = self._unacked.settle([delivery])
            await self._settling.finish(done)
        if stale:
            raise self._not_in_hand(delivery.message.id)
