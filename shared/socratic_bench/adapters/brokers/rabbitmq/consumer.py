"""One consumer of a queue: hands out the messages of its intake, and settles them.

RabbitMQ can delay messages itself: they expire in a queue that dead-letters at least once. But the
server's process for that ends for good, for all queues, when a few of them disturb it within
seconds. From then on every such queue that is declared, or recovers after a restart, stays without
a leader (rabbitmq-server#16652).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import structlog
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage

from socratic_bench.adapters.brokers.rabbitmq import health, topology
from socratic_bench.adapters.brokers.rabbitmq.connection import (
    SETTLE_SECONDS,
    ReconnectingConnection,
    ignoring_connection_errors,
    lost_event,
)
from socratic_bench.adapters.brokers.rabbitmq.declaring import GroupQueues
from socratic_bench.adapters.brokers.rabbitmq.health import QueueReport
from socratic_bench.adapters.brokers.rabbitmq.intake import HoldTime, QueueIntake
from socratic_bench.adapters.brokers.rabbitmq.publishing import Routing
from socratic_bench.adapters.brokers.rabbitmq.settling import Settling, acknowledge
from socratic_bench.adapters.brokers.rabbitmq.wire import (
    attempts_before,
    due_of,
    from_amqp,
)
from socratic_bench.adapters.brokers.receiving import UnackedConsumer
from socratic_bench.concurrency.deadlines import cancelled, finish_despite_cancel
from socratic_bench.errors import (
    BrokerClosed,
    BrokerError,
    BrokerUnavailable,
)
from socratic_bench.ports.broker import Delivery, WorkQueue

log = structlog.get_logger(__name__)

# D-049: a consumer keeps the time, since expiring messages rely on dead-lettering.
MOST_DELAYED = 1_000
"""The most delayed messages that one consumer holds. Further ones wait on the server."""

TRY_AGAIN_SECONDS = 1.0

MOVE_SECONDS = 5.0
"""Seconds that a message has to get back into its queue when its consumer ends."""


class DelayedMessages:
    """Takes the delayed messages of one queue, and puts each back when it is due."""

    def __init__(
        self,
        connection: ReconnectingConnection,
        routing: Routing,
        queue: WorkQueue,
        *,
        hold: HoldTime,
    ) -> None:
        """A message stays here for at most the seconds of `hold` before the server gets a copy:
        the server closes the channel of a consumer that settles nothing for long.
        """
        self._connection = connection
        self._routing = routing
        self._queue = queue
        self._hold = hold
        self._waiting: dict[asyncio.Task[None], str] = {}
        self._name = topology.delayed_queue(queue.name)
        self._taking = False
        self._lost = asyncio.Event()
        self._unseen = False
        self._leaderless_since: float | None = None
        self._trouble = "it is not connected"
        self._running = asyncio.create_task(self._run(), name=f"delayed of {queue.name}")

    def __len__(self) -> int:
        """How many delayed messages this process holds."""
        return len(self._waiting)

    def count(self, group: str) -> int:
        """Count the delayed messages of a group that this process holds."""
        return sum(each == group for each in self._waiting.values())

    def problems(self) -> dict[str, str]:
        """Problems of the queue of delayed messages, by its name."""
        if self._taking:
            return {}
        name = self._name
        if self._leaderless_since is not None:
            return {name: health.no_leader(name)}
        return {name: f"queue {name!r} is not consumed by this process: {self._trouble}"}

    def compare(self, found: Mapping[str, QueueReport | None]) -> None:
        """Consume again if the server shows no consumer of the queue in two looks."""
        seen = found.get(self._name)
        unseen = self._taking and seen is not None and not seen.consumers
        if unseen and self._unseen:
            self._lost.set()
        self._unseen = unseen

    async def end(self) -> None:
        """Leave the messages to another consumer."""
        await cancelled(self._running)

    async def _run(self) -> None:
        while True:
            try:
                await self._check_leader()
                async with self._connection.channel() as channel:
                    try:
                        await self._consume_until_lost(channel)
                    finally:
                        # The channel is being closed: later messages return to their queue.
                        self._taking = False
                        await self._forget_all()
                await asyncio.sleep(SETTLE_SECONDS)
            except BrokerClosed:
                return
            except Exception as error:
                # This task alone consumes the delayed messages, so it retries after any error.
                bug = None if isinstance(error, BrokerError) else error
                self._trouble = str(error)
                log.warning(
                    "delayed messages wait",
                    queue=self._queue.name,
                    reason=str(error),
                    exc_info=bug,
                )
                await asyncio.sleep(TRY_AGAIN_SECONDS)

    async def _check_leader(self) -> None:
        """Raise BrokerUnavailable while the queue has no leader: consuming it would end the shared
        connection. After REPLACE_SECONDS an empty queue replaces it.
        """
        now = asyncio.get_running_loop().time()
        if not await health.leaderless(self._connection, [self._name]):
            self._leaderless_since = None
            return
        if self._leaderless_since is None:
            self._leaderless_since = now
        if now - self._leaderless_since >= health.REPLACE_SECONDS:
            log.error(health.REPLACED, queue=self._name)
            await health.delete(self._connection, self._name)
            await self._connection.restore()
            self._leaderless_since = None
            return
        raise BrokerUnavailable(health.no_leader(self._name))

    async def _consume_until_lost(self, channel: AbstractChannel) -> None:
        channel.close_callbacks.add(self._hold.on_close)
        self._lost = await lost_event(channel)
        await self._connection.in_time(channel.set_qos(prefetch_count=MOST_DELAYED))
        delayed = await self._connection.in_time(
            channel.declare_queue(self._name, durable=True, arguments=topology.QUEUE_ARGUMENTS)
        )
        self._taking = True
        await self._connection.in_time(delayed.consume(self._on_message))
        await self._lost.wait()

    async def _on_message(self, incoming: AbstractIncomingMessage) -> None:
        if not self._taking:
            return
        task = asyncio.create_task(self._put_back(incoming))
        self._waiting[task] = from_amqp(incoming)[0].group
        task.add_done_callback(self._waiting.pop)

    async def _put_back(self, incoming: AbstractIncomingMessage) -> None:
        left = due_of(incoming) - time.time()
        held = min(left, self._hold.seconds)
        await asyncio.sleep(held)
        still_to_wait = max(0.0, left - held)
        while True:
            try:
                # A copy that is published and not acknowledged would be delivered twice.
                await finish_despite_cancel(
                    self._move(incoming, still_to_wait), patience=MOVE_SECONDS
                )
            except BrokerClosed:
                return
            except BrokerError as error:
                log.debug("not put back yet", queue=self._queue.name, reason=str(error))
                await asyncio.sleep(TRY_AGAIN_SECONDS)
            else:
                return

    async def _move(self, incoming: AbstractIncomingMessage, delay: float) -> None:
        await self._routing.republish(from_amqp(incoming), attempts_before(incoming), delay)
        with ignoring_connection_errors():
            await acknowledge(incoming)

    async def _forget_all(self) -> None:
        for task in self._waiting:
            task.cancel()
        await asyncio.gather(*self._waiting, return_exceptions=True)


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
        hold = HoldTime(queue.name, hold_seconds)
        self._delayed = DelayedMessages(connection, routing, queue, hold=hold)
        self._intake = QueueIntake(
            connection,
            routing,
            queue,
            group_queues,
            self._unacked,
            self._settling,
            prefetch=prefetch,
            per_group=prefetch if prefetch_per_group is None else prefetch_per_group,
            hold=hold,
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

    def compare(self, found: Mapping[str, QueueReport | None]) -> None:
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
