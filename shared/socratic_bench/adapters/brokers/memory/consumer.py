"""One consumer of a queue in memory, with its unsettled deliveries."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from math import inf

from socratic_bench.adapters.brokers.memory.queue import MemoryQueue, Waiting
from socratic_bench.adapters.brokers.receiving import QueueConsumer
from socratic_bench.adapters.brokers.unacked import Seclusion
from socratic_bench.concurrency.waiting_line import RoundRobin
from socratic_bench.errors import BrokerError
from socratic_bench.ports.broker import Delivery, alone_for


class MemoryConsumer(QueueConsumer):
    """Holds at most `prefetch` deliveries, and `prefetch_per_group` of one group."""

    def __init__(
        self,
        queue: MemoryQueue,
        receipts: Iterator[int],
        *,
        prefetch: int,
        prefetch_per_group: int | None,
        delivery_limit: int,
    ) -> None:
        self._turns: RoundRobin[Waiting] = RoundRobin(prefetch_per_group)
        super().__init__(
            queue.name,
            self._turns.receivers,
            prefetch=prefetch,
            prefetch_per_group=prefetch_per_group,
            delivery_limit=delivery_limit,
        )
        self._queue = queue
        self._receipts = receipts
        self._prefetch = prefetch
        self._in_hand: dict[int, Waiting] = {}
        self._seclusion = Seclusion()
        self._clearing: asyncio.TimerHandle | None = None
        queue.join(self._turns)

    @property
    def queue(self) -> str:
        """The name of its queue."""
        return self._queue.name

    @property
    def in_hand(self) -> int:
        """The number of unsettled deliveries."""
        return len(self._in_hand)

    def holds(self, queue: MemoryQueue, group: str) -> int:
        """Return the number of unsettled deliveries of a group of a queue."""
        if queue is not self._queue:
            return 0
        return sum(waiting.message.group == group for waiting in self._in_hand.values())

    async def ack(self, deliveries: Iterable[Delivery]) -> None:
        stale = [delivery for delivery in deliveries if not self._release(delivery)]
        self._wake_receiver()
        if stale:
            raise self._not_in_hand(stale[0].message.id, len(stale))

    async def reject(self, delivery: Delivery, reason: str) -> None:
        self._settle(delivery)
        self._queue.dead_letter(delivery, reason)

    def end(self, error: BrokerError) -> None:
        """Return unsettled messages to the queue; later calls for messages raise `error`."""
        if self._ended:
            return
        self._queue.leave(self._turns)
        for waiting in reversed(self._in_hand.values()):
            self._queue.give_back(waiting)
        self._in_hand.clear()
        self._seclusion.forget_all()
        if self._clearing is not None:
            self._clearing.cancel()
        self._end(error)

    async def _deliver_again(self, delivery: Delivery, attempts: int, delay: float) -> None:
        self._settle(delivery)
        self._queue.deliver_again(delivery, attempts, delay)

    def _take(self, limit: int) -> list[Delivery]:
        if not self._may_take():
            return []
        if self._queue.has_suspects:
            return [self._hand_out_alone(self._queue.take_suspect())]
        free = self._prefetch - len(self._in_hand)
        taken = self._queue.take(self._turns, min(limit, free))
        deliveries = [self._hand_out(waiting) for waiting in taken]
        self._wake_receiver()
        return deliveries

    def _may_take(self) -> bool:
        if self._queue.has_suspects:
            return self._seclusion.admits_suspect(len(self._in_hand))
        return (
            bool(self._turns)
            and len(self._in_hand) < self._prefetch
            and self._seclusion.admits_others
        )

    def _hand_out_alone(self, suspect: Waiting) -> Delivery:
        delivery = self._hand_out(suspect)
        loop = asyncio.get_running_loop()
        until = loop.time() + alone_for(suspect.redeliveries)
        self._seclusion.begin(delivery.receipt, until)
        if self._clearing is not None:
            self._clearing.cancel()
        self._clearing = loop.call_at(until, self._clear, until) if until < inf else None
        return delivery

    def _clear(self, until: float) -> None:
        if self._seclusion.clear(until):
            self._wake_receiver()

    def _hand_out(self, waiting: Waiting) -> Delivery:
        receipt = next(self._receipts)
        delivery = Delivery(waiting.message, waiting.attempts + 1, receipt, waiting.suspect)
        self._in_hand[delivery.receipt] = waiting
        return delivery

    def _release(self, delivery: Delivery) -> bool:
        waiting = self._in_hand.pop(delivery.receipt, None)
        if waiting is None:
            return False
        self._seclusion.settled(delivery.receipt)
        if not waiting.suspect:
            self._queue.settled(self._turns, waiting.message.group)
        return True

    def _settle(self, delivery: Delivery) -> None:
        if not self._release(delivery):
            raise self._not_in_hand(delivery.message.id)
        self._wake_receiver()

    def _wake_receiver(self) -> None:
        if self._may_take():
            self._turns.receivers.wake_one()
