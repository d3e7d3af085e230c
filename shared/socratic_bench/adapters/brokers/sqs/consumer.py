"""One consumer of a queue: hands out the messages of its intake, and settles them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

import structlog

from socratic_bench.adapters.brokers.sqs.copies import Copies
from socratic_bench.adapters.brokers.sqs.intake import Intake, OrphanedPolls
from socratic_bench.adapters.brokers.sqs.sender import Claims
from socratic_bench.adapters.brokers.sqs.server_queue import Incoming, ServerQueue, handles_of
from socratic_bench.adapters.brokers.sqs.wire import State
from socratic_bench.adapters.brokers.unacked import Batch, UnackedMessages
from socratic_bench.concurrency.cancellation import cancelled
from socratic_bench.errors import BrokerClosed, BrokerError, DeliveryLost, InvalidInput
from socratic_bench.ports.broker import Delivery, WorkQueue

log = structlog.get_logger(__name__)

INVISIBLE_SECONDS: Final = 30.0
"""Seconds after which SQS delivers a message again whose consumer is dead."""

_BEATS: Final = 3
"""Heartbeats in that time: two of them may fail."""


class Heartbeat:
    """Renews the invisibility of a consumer's messages, ten to a request."""

    def __init__(
        self,
        queue: ServerQueue,
        unacked: UnackedMessages[Incoming],
        *,
        invisible: float = INVISIBLE_SECONDS,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._queue = queue
        self._unacked = unacked
        self._invisible = invisible
        self._sleep = sleep

    async def run(self) -> None:
        """Beat until cancelled, or until the broker is closed."""
        while True:
            await self._sleep(self._invisible / _BEATS)
            try:
                await self.beat()
            except BrokerClosed:
                return

    async def beat(self) -> None:
        """Renew what was held for a while; forget what SQS has taken back.

        A message that arrived since the last heartbeat needs none yet.
        """
        then = asyncio.get_running_loop().time() - self._invisible / _BEATS / 2
        held = {
            batch.incoming.handle: batch
            for batch in self._unacked.batches
            if batch.arrived <= then and batch.unsettled
        }
        if not held:
            return
        failed = await self._queue.show_in(round(self._invisible), list(held))
        for handle in failed:
            if held[handle].unsettled:
                log.warning(
                    "held too long", queue=self._queue.name, message=held[handle].incoming.id
                )
                self._unacked.lose(held[handle])


class SqsConsumer:
    """Consumes a queue; fulfils the broker port."""

    def __init__(
        self,
        work: WorkQueue,
        queue: ServerQueue,
        copies: Copies,
        claims: Claims,
        orphans: OrphanedPolls,
        receipts: Iterator[int],
        *,
        prefetch: int,
        prefetch_per_group: int | None,
        delivery_limit: int,
        invisible: float,
        poll_seconds: int,
    ) -> None:
        if prefetch < 1 or (prefetch_per_group is not None and prefetch_per_group < 1):
            raise InvalidInput(
                f"consumer of queue {work.name!r}: a prefetch of {prefetch}, {prefetch_per_group} "
                "per group, would never receive anything; give 1 or more"
            )
        self._work = work
        self._queue = queue
        self._copies = copies
        self._delivery_limit = delivery_limit
        self._unacked: UnackedMessages[Incoming] = UnackedMessages(
            work.name,
            receipts,
            separate_groups=work.separate_groups,
            prefetch=prefetch,
            prefetch_per_group=prefetch_per_group,
        )
        self._draining = False
        self._ended: BrokerError | None = None
        self._intake = Intake(
            work,
            queue,
            copies,
            claims,
            self._unacked,
            orphans,
            prefetch=prefetch,
            prefetch_per_group=prefetch_per_group,
            invisible=invisible,
            poll_seconds=poll_seconds,
        )
        self._beating = asyncio.create_task(
            Heartbeat(queue, self._unacked, invisible=invisible).run(),
            name=f"heartbeat of {queue.name}",
        )

    @property
    def trouble(self) -> str | None:
        """Why the queue cannot be polled; None while it can."""
        return self._intake.trouble

    def serve(self, groups: Collection[str]) -> None:
        """Do nothing: one queue holds all groups."""

    async def heard_of_group(self) -> None:
        await asyncio.get_running_loop().create_future()

    async def receive(self, limit: int) -> Sequence[Delivery]:
        # A queue that is never empty must leave room for other tasks on the event loop.
        await asyncio.sleep(0)
        while True:
            if error := self._ended or self._intake.broken:
                raise error
            if self._draining:
                return []
            if taken := self._unacked.take(limit, asyncio.get_running_loop().time()):
                self._intake.look_again()
                return taken
            await self._unacked.receivers.wait()

    async def ack(self, deliveries: Iterable[Delivery]) -> None:
        done, stale = self._settle(deliveries)
        lost = await self._delete(done)
        if stale:
            raise self._not_in_hand(stale[0].message.id, len(stale))
        if lost:
            raise self._not_in_hand(lost[0].id, len(lost))

    async def retry(
        self, delivery: Delivery, delay: float, reason: str, *, counted: bool = True
    ) -> None:
        if counted and delivery.attempt >= self._delivery_limit:
            await self.reject(delivery, reason)
            return
        self._check_in_hand(delivery)
        attempts = delivery.attempt if counted else delivery.attempt - 1
        await self._copies.again([delivery.message], State(attempts=attempts), delay)
        await self.ack([delivery])

    async def reject(self, delivery: Delivery, reason: str) -> None:
        self._check_in_hand(delivery)
        await self._copies.dead_letter([delivery.message], delivery.attempt, reason)
        await self.ack([delivery])

    def drain(self) -> None:
        self._draining = True
        self._intake.drain()
        self._unacked.receivers.wake_all()

    async def end(self, error: BrokerError) -> None:
        """Return unsettled messages to the queue; later calls for messages raise `error`."""
        self._ended = self._ended or error
        self.drain()
        try:
            await self._intake.end()
        finally:
            await cancelled(self._beating)
            self._unacked.receivers.wake_all()

    def _settle(
        self, deliveries: Iterable[Delivery]
    ) -> tuple[list[Batch[Incoming]], list[Delivery]]:
        settled = self._unacked.settle(deliveries)
        self._intake.look_again()
        return settled

    async def _delete(self, done: Iterable[Batch[Incoming]]) -> list[Incoming]:
        """Delete messages of SQS; returns those that it would not delete, and so delivers again."""
        incoming = {batch.incoming.handle: batch.incoming for batch in done}
        failed = await self._queue.delete(handles_of(incoming.values())) if incoming else ()
        return [incoming[handle] for handle in failed]

    def _check_in_hand(self, delivery: Delivery) -> None:
        try:
            self._unacked.part(delivery)
        except DeliveryLost:
            raise self._not_in_hand(delivery.message.id, 1) from None

    def _not_in_hand(self, message_id: str, count: int) -> BrokerError:
        if isinstance(self._ended, BrokerClosed):
            return self._ended
        return self._unacked.lost(message_id, count)
