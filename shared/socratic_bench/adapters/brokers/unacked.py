"""The batches that a consumer holds, taken apart, until every message of each is settled.

For adapters whose server carries several messages as one. A suspect is secluded meanwhile: a
consumer handles it alone until it is settled or proves harmless.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from math import inf
from typing import Generic, NamedTuple, TypeVar

from socratic_bench.concurrency.waiting_line import RoundRobin
from socratic_bench.errors import DeliveryLost
from socratic_bench.events.codec import Message
from socratic_bench.ports.broker import Delivery


class Seclusion:
    """Decides which messages a consumer may hand out beside those in hand. Does no I/O."""

    __slots__ = ("_alone", "_cleared", "until")

    def __init__(self) -> None:
        self._alone: int | None = None
        self._cleared: set[int] = set()
        self.until = inf
        """When the seclusion of the suspect ends; `inf` for never, or without a suspect."""

    def begin(self, receipt: int, until: float) -> None:
        """Note that a suspect is handed out; it stays alone until `until` or its settlement."""
        self._alone, self.until = receipt, until

    def settled(self, receipt: int) -> None:
        """Note that a delivery, suspect or not, left the consumer's hand."""
        self._cleared.discard(receipt)
        if receipt == self._alone:
            self._alone, self.until = None, inf

    def clear(self, now: float) -> bool:
        """End the seclusion of a suspect whose time is over; tells whether one ended."""
        if self._alone is None or now < self.until:
            return False
        self._cleared.add(self._alone)
        self._alone, self.until = None, inf
        return True

    def forget_all(self) -> None:
        """Forget all deliveries in hand."""
        self._alone, self.until = None, inf
        self._cleared.clear()

    @property
    def admits_others(self) -> bool:
        """Tell whether an ordinary message may be handed out now."""
        return self._alone is None

    def admits_suspect(self, in_hand: int) -> bool:
        """Tell whether a suspect may be handed out beside so many deliveries in hand."""
        return in_hand == len(self._cleared)


Incoming = TypeVar("Incoming")
"""A message as the server's driver presents it."""


@dataclass(slots=True, eq=False)
class Batch(Generic[Incoming]):
    """One message of the server, which holds one or several of ours."""

    incoming: Incoming
    arrived: float
    """When it arrived, on the event loop's clock."""

    unsettled: set[int] = field(default_factory=set)
    """The receipts of its unsettled messages."""

    given_up: bool = False
    """Whether the server has its acknowledgement, and copies to redeliver."""

    alone_for: float = 0.0
    """Seconds that its message is handled alone; 0 unless it came from the suspects."""

    to_return: bool = False
    """Whether the whole batch has to go back, since settling one of its messages failed."""

    @property
    def suspect(self) -> bool:
        return self.alone_for > 0


class BatchPart(NamedTuple, Generic[Incoming]):
    """One message of a batch."""

    delivery: Delivery
    batch: Batch[Incoming]


def lost_delivery(queue: str, message_id: str, count: int = 1) -> DeliveryLost:
    """Return the error for deliveries that are not in a consumer's hand."""
    return DeliveryLost(
        f"queue {queue!r}: message {message_id!r} ({count} of this call) is not in this "
        "consumer's hand: it was settled before, or the consumer or its connection ended, and "
        "it went back to the queue and is delivered again"
    )


class UnackedMessages(Generic[Incoming]):
    """Batches, with the messages that wait and those in hand. Does no input or output."""

    def __init__(
        self,
        queue: str,
        receipts: Iterator[int],
        *,
        separate_groups: bool,
        prefetch: int,
        prefetch_per_group: int | None,
    ) -> None:
        self._queue = queue
        self._separate_groups = separate_groups
        self._prefetch = prefetch
        self._turns: RoundRobin[BatchPart[Incoming]] = RoundRobin(
            prefetch_per_group if separate_groups else None
        )
        self.receivers = self._turns.receivers
        self._waiting: dict[str, deque[BatchPart[Incoming]]] = {}
        self._suspects: deque[BatchPart[Incoming]] = deque()
        self.seclusion = Seclusion()
        self._moving = 0
        self._in_hand: dict[int, BatchPart[Incoming]] = {}
        self._batches: dict[Batch[Incoming], None] = {}
        self._receipts = receipts

    def arrive(
        self,
        incoming: Incoming,
        messages: Iterable[Message],
        attempt: int,
        now: float,
    ) -> Batch[Incoming]:
        """Add a batch; its messages wait to be handed out."""
        batch = Batch(incoming, now)
        for part in self._parts(batch, messages, attempt):
            name = self._group_queue_of(part.delivery.message)
            waiting = self._waiting.setdefault(name, deque())
            waiting.append(part)
            if len(waiting) == 1:
                self._turns.offer(name, waiting)
        self._wake_receiver()
        return batch

    def suspect(
        self,
        incoming: Incoming,
        messages: Iterable[Message],
        attempt: int,
        now: float,
        alone_for: float,
    ) -> Batch[Incoming]:
        """Add a suspect; nothing else is handed out until it had its turn."""
        batch = Batch(incoming, now, alone_for=alone_for)
        self._suspects.extend(self._parts(batch, messages, attempt))
        self._wake_receiver()
        return batch

    def keep(self, incoming: Incoming, now: float) -> Batch[Incoming]:
        """Add a batch that is being moved elsewhere; none of its messages is handed out.

        Until it is `moved`, no suspect is handed out: a suspect that kills the process before the
        server knows of the move would exist twice, and become two dead letters.
        """
        batch = Batch(incoming, now)
        self._batches[batch] = None
        self._moving += 1
        return batch

    def moved(self) -> None:
        """Note that a kept batch is settled."""
        self._moving -= 1
        self._wake_receiver()

    def release(self, batch: Batch[Incoming]) -> bool:
        """Remove a batch; tells whether it was still unacked."""
        unacked = batch in self._batches
        self._batches.pop(batch, None)
        return unacked

    def count(self, group: str) -> int:
        """Count the unacked messages of a group."""
        waiting = chain(self._in_hand.values(), self._suspects, *self._waiting.values())
        return sum(part.delivery.message.group == group for part in waiting)

    @property
    def held(self) -> int:
        """Count the messages that wait and those in hand."""
        waiting = sum(map(len, self._waiting.values()))
        return len(self._in_hand) + len(self._suspects) + waiting

    @property
    def admits_others(self) -> bool:
        """Whether no suspect waits for its turn or has it."""
        return not self._suspects and self.seclusion.admits_others

    def held_of(self, group: str) -> int:
        """Count the messages of a group that wait and those in hand, where groups have limits."""
        return self._turns.in_hand(group) + len(self._waiting.get(group, ()))

    @property
    def batches(self) -> Collection[Batch[Incoming]]:
        """The batches that the consumer holds."""
        return self._batches.keys()

    def clear(self, now: float) -> bool:
        """End the time alone of the suspect in hand if it is over; tells whether it ended."""
        cleared = self.seclusion.clear(now)
        if cleared:
            self._wake_receiver()
        return cleared

    def take(self, limit: int, now: float) -> list[Delivery]:
        """Hand out up to `limit` messages within the prefetch; a suspect on its own."""
        if not self._may_take():
            return []
        if self._suspects:
            suspect = self._suspects.popleft()
            self.seclusion.begin(suspect.delivery.receipt, now + suspect.batch.alone_for)
            return [self._hand_out(suspect)]
        taken: list[Delivery] = []
        limit = min(limit, self._prefetch - len(self._in_hand))
        while len(taken) < limit and self._turns:
            name, waiting, part = self._turns.take()
            if not waiting:
                del self._waiting[name]
            taken.append(self._hand_out(part))
        self._wake_receiver()
        return taken

    def part(self, delivery: Delivery) -> BatchPart[Incoming] | None:
        """Return the part behind a delivery; None if it is not in hand."""
        return self._in_hand.get(delivery.receipt)

    def settle(
        self, deliveries: Iterable[Delivery]
    ) -> tuple[list[Batch[Incoming]], list[Delivery]]:
        """Release deliveries; returns the batches that this completes, and the deliveries that
        were not in hand.
        """
        done: list[Batch[Incoming]] = []
        stale: list[Delivery] = []
        for delivery in deliveries:
            part = self._in_hand.pop(delivery.receipt, None)
            if part is None:
                stale.append(delivery)
                continue
            self.seclusion.settled(delivery.receipt)
            if not part.batch.suspect:
                name = self._group_queue_of(delivery.message)
                self._turns.settled(name, self._waiting.get(name))
            part.batch.unsettled.discard(delivery.receipt)
            if not part.batch.unsettled:
                self._batches.pop(part.batch, None)
                done.append(part.batch)
        self._wake_receiver()
        return done, stale

    def take_back(self) -> list[tuple[Batch[Incoming], list[BatchPart[Incoming]]]]:
        """Remove and return the waiting messages of each batch.

        They are unsettled until the caller `gave_back` copies of them: the batch may not be
        acknowledged before, whatever becomes of its messages in hand.
        """
        taken: dict[Batch[Incoming], list[BatchPart[Incoming]]] = {}
        for part in chain(self._suspects, *self._waiting.values()):
            taken.setdefault(part.batch, []).append(part)
        self._forget_waiting()
        return list(taken.items())

    def gave_back(self, batch: Batch[Incoming], parts: Iterable[BatchPart[Incoming]]) -> bool:
        """Settle messages that were taken back; tells whether this completes their batch."""
        batch.unsettled.difference_update(part.delivery.receipt for part in parts)
        return not batch.unsettled and self.release(batch)

    def give_up_since(
        self, then: float
    ) -> list[tuple[Batch[Incoming], list[BatchPart[Incoming]], list[BatchPart[Incoming]]]]:
        """Return the unfinished batches that arrived before `then`.

        Each comes with its messages in hand, which stay, and its waiting ones, which are removed.
        """
        given_up: list[
            tuple[Batch[Incoming], list[BatchPart[Incoming]], list[BatchPart[Incoming]]]
        ] = []
        for batch in list(self._batches):
            if batch.arrived > then or batch.given_up or not batch.unsettled:
                continue
            batch.given_up = True
            waited = self._stop_waiting(batch)
            batch.unsettled.difference_update(part.delivery.receipt for part in waited)
            in_hand = [self._in_hand[receipt] for receipt in sorted(batch.unsettled)]
            if not in_hand:
                del self._batches[batch]
            given_up.append((batch, in_hand, waited))
        return given_up

    def lose(self, batch: Batch[Incoming]) -> None:
        """Forget a batch: the server took it back."""
        self._stop_waiting(batch)
        batch.unsettled.clear()
        self._batches.pop(batch, None)
        lost = [part.delivery for part in self._in_hand.values() if part.batch is batch]
        self.settle(lost)

    def lose_all(self) -> set[str]:
        """Forget everything: the server redelivers unsettled messages.

        Returns the ids of the suspects that were not handed out.
        """
        spared = {part.delivery.message.id for part in self._suspects}
        self._forget_waiting()
        for part in self._in_hand.values():
            if not part.batch.suspect:
                self._turns.settled(self._group_queue_of(part.delivery.message), None)
        self._in_hand.clear()
        self.seclusion.forget_all()
        self._batches.clear()
        return spared

    def lost(self, message_id: str) -> DeliveryLost:
        """Return the error for a delivery that is not in hand."""
        return lost_delivery(self._queue, message_id)

    def _forget_waiting(self) -> None:
        for name, waiting in self._waiting.items():
            waiting.clear()
            self._turns.withdraw(name)
        self._waiting.clear()
        self._suspects.clear()

    def _parts(
        self, batch: Batch[Incoming], messages: Iterable[Message], attempt: int
    ) -> list[BatchPart[Incoming]]:
        self._batches[batch] = None
        parts = [
            BatchPart(Delivery(message, attempt, next(self._receipts), batch.suspect), batch)
            for message in messages
        ]
        batch.unsettled.update(part.delivery.receipt for part in parts)
        return parts

    def _hand_out(self, part: BatchPart[Incoming]) -> Delivery:
        self._in_hand[part.delivery.receipt] = part
        return part.delivery

    def _stop_waiting(self, batch: Batch[Incoming]) -> list[BatchPart[Incoming]]:
        if batch.suspect:
            stopped = [part for part in self._suspects if part.batch is batch]
            self._suspects = deque(part for part in self._suspects if part.batch is not batch)
            self._wake_receiver()
            return stopped
        stopped = []
        names = {
            name
            for name, waiting in self._waiting.items()
            if any(part.batch is batch for part in waiting)
        }
        for name in names:
            waiting = self._waiting[name]
            stopped += (part for part in waiting if part.batch is batch)
            left = [part for part in waiting if part.batch is not batch]
            waiting.clear()
            waiting.extend(left)
            if not left:
                del self._waiting[name]
                self._turns.withdraw(name)
        return stopped

    def _group_queue_of(self, message: Message) -> str:
        return message.group if self._separate_groups else ""

    def _may_take(self) -> bool:
        if self._suspects:
            return not self._moving and self.seclusion.admits_suspect(len(self._in_hand))
        return (
            bool(self._turns)
            and len(self._in_hand) < self._prefetch
            and self.seclusion.admits_others
        )

    def _wake_receiver(self) -> None:
        if self._may_take():
            self.receivers.wake_one()
