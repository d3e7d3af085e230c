"""One consumer of a queue: hands out the messages of its intake, and settles them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Final

import structlog

from socratic_bench.adapters.brokers.receiving import UnackedConsumer
from socratic_bench.adapters.brokers.sqs.copies import Copies
from socratic_bench.adapters.brokers.sqs.intake import OrphanedPolls, PollIntake
from socratic_bench.adapters.brokers.sqs.sender import Claims
from socratic_bench.adapters.brokers.sqs.server_queue import Incoming, ServerQueue, handles_of
from socratic_bench.adapters.brokers.sqs.wire import WireState
from socratic_bench.adapters.brokers.unacked import Batch, UnackedMessages
from socratic_bench.concurrency.deadlines import cancelled
from socratic_bench.errors import BrokerClosed, BrokerError
from socratic_bench.ports.broker import Delivery, WorkQueue

log = structlog.get_logger(__name__)

INVISIBLE_SECONDS: Final = 30.0
"""Seconds after which SQS delivers a message again whose consumer is dead."""

_BEATS: Final = 3
"""Heartbeats in that time: two of them may fail."""


class InvisibilityHeartbeat:
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
        if not self._queue.may_settle:
            return  # They are still in hand until somebody else receives them.
        for handle in failed:
            if held[handle].unsettled:
                log.warning(
                    "held too long", queue=self._queue.name, message=held[handle].incoming.id
                )
                self._unacked.lose(held[handle])


class SqsConsumer(UnackedConsumer[Incoming]):
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
        super().__init__(
            work,
            receipts,
            prefetch=prefetch,
            prefetch_per_group=prefetch_per_group,
            delivery_limit=delivery_limit,
        )
        self._queue = queue
        self._copies = copies
        self._intake = PollIntake(
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
            on_broken=self._end,
        )
        self._beating = asyncio.create_task(
            InvisibilityHeartbeat(queue, self._unacked, invisible=invisible).run(),
            name=f"heartbeat of {queue.name}",
        )

    @property
    def trouble(self) -> str | None:
        """Why the queue cannot be polled; None while it can."""
        return self._intake.trouble

    async def ack(self, deliveries: Iterable[Delivery]) -> None:
        done, stale = self._settle(deliveries)
        lost = await self._delete(done)
        if stale:
            raise self._not_in_hand(stale[0].message.id, len(stale))
        if lost:
            raise self._not_in_hand(lost[0].id, len(lost))

    async def reject(self, delivery: Delivery, reason: str) -> None:
        self._part(delivery)
        await self._copies.dead_letter([delivery.message], delivery.attempt, reason)
        await self.ack([delivery])

    def drain(self) -> None:
        super().drain()
        self._intake.drain()

    async def end(self, error: BrokerError) -> None:
        """Return unsettled messages to the queue; later calls for messages raise `error`."""
        self._end(error)
        self.drain()
        try:
            await self._intake.end()
        finally:
            await cancelled(self._beating)
            self._receivers.wake_all()

    def _take(self, limit: int) -> Sequence[Delivery]:
        if taken := self._unacked.take(limit, asyncio.get_running_loop().time()):
            self._intake.look_again()
        return taken

    async def _deliver_again(self, delivery: Delivery, attempts: int, delay: float) -> None:
        self._part(delivery)
        await self._copies.again([delivery.message], WireState(attempts=attempts), delay)
        await self.ack([delivery])

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
