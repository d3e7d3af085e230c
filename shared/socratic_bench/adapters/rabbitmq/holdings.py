"""What a consumer holds: parcels from the server, taken apart, until all of each is settled."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from aio_pika.abc import AbstractIncomingMessage

from socratic_bench.consuming.seclusion import Seclusion
from socratic_bench.consuming.turns import Turns
from socratic_bench.errors import DeliveryLost
from socratic_bench.ports.broker import Delivery, Message


@dataclass(slots=True, eq=False)
class Parcel:
    """One message of the server, as it came, with one or several of ours in it."""

    incoming: AbstractIncomingMessage
    arrived: float
    """When, on the event loop's clock."""

    unsettled: set[int] = field(default_factory=set)
    """The receipts of what is in it and not settled yet."""

    given_up: bool = False
    """Whether the server has its acknowledgement already, and copies to deliver again."""

    alone_for: float = 0.0
    """Seconds for which what is in it is alone in hand; 0 unless it came from the suspects."""

    to_return: bool = False
    """Whether it has to go back to its queue as a whole, since settling something of it failed."""

    @property
    def suspect(self) -> bool:
        return self.alone_for > 0


class Part(NamedTuple):
    """One message of a parcel."""

    delivery: Delivery
    parcel: Parcel


class Holdings:
    """Parcels, and what of them waits and what is in hand. Does no input or output."""

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
        self._turns: Turns[Part] = Turns(prefetch_per_group if separate_groups else None)
        self.receivers = self._turns.receivers
        self._waiting: dict[str, deque[Part]] = {}
        self._suspects: deque[Part] = deque()
        self.seclusion = Seclusion()
        self._moving = 0
        self._in_hand: dict[int, Part] = {}
        self._parcels: dict[Parcel, None] = {}
        self._receipts = receipts

    def arrive(
        self,
        incoming: AbstractIncomingMessage,
        messages: Iterable[Message],
        attempt: int,
        now: float,
    ) -> None:
        """Take a parcel in; what is in it waits for its turn."""
        for part in self._parts(Parcel(incoming, now), messages, attempt):
            name = self._lane_of(part.delivery.message)
            waiting = self._waiting.setdefault(name, deque())
            waiting.append(part)
            if len(waiting) == 1:
                self._turns.offer(name, waiting)
        self._wake_receiver()

    def suspect(
        self,
        incoming: AbstractIncomingMessage,
        messages: Iterable[Message],
        attempt: int,
        now: float,
        alone_for: float,
    ) -> None:
        """Take a suspect in; from now on nothing else is handed out until it had its turn."""
        parcel = Parcel(incoming, now, alone_for=alone_for)
        self._suspects.extend(self._parts(parcel, messages, attempt))
        self._wake_receiver()

    def keep(self, incoming: AbstractIncomingMessage, now: float) -> Parcel:
        """Take a parcel in that is being moved elsewhere; nothing of it is to be handed out.

        Until it is `moved` no suspect is handed out: one that ended the process before the server
        knows of the move would be there twice, and twice a dead letter.
        """
        parcel = Parcel(incoming, now)
        self._parcels[parcel] = None
        self._moving += 1
        return parcel

    def moved(self) -> None:
        """A parcel that was kept is settled, one way or the other."""
        self._moving -= 1
        self._wake_receiver()

    def let_go(self, parcel: Parcel) -> bool:
        """Whether a parcel is still held; it is not any more after this."""
        held = parcel in self._parcels
        self._parcels.pop(parcel, None)
        return held

    def count(self, group: str) -> int:
        """How many messages of a group are held."""
        waiting = chain(self._in_hand.values(), self._suspects, *self._waiting.values())
        return sum(part.delivery.message.group == group for part in waiting)

    def tags(self) -> set[str]:
        """The tags of the server's consumers of which something is held."""
        return {parcel.incoming.consumer_tag or "" for parcel in self._parcels}

    def clear(self, now: float) -> bool:
        """Whether the suspect that was alone in hand need not be so any more, from now on."""
        cleared = self.seclusion.clear(now)
        if cleared:
            self._wake_receiver()
        return cleared

    def take(self, limit: int, now: float) -> list[Delivery]:
        """Hand out up to `limit`, as many as may be in hand; a suspect on its own."""
        if not self._may_take():
            return []
        if self._suspects:
            suspect = self._suspects.popleft()
            self.seclusion.begin(suspect.delivery.receipt, now + suspect.parcel.alone_for)
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

    def part(self, delivery: Delivery) -> Part:
        """What is known of a delivery in hand. Raises DeliveryLost for any other."""
        part = self._in_hand.get(delivery.receipt)
        if part is None:
            raise self.lost(delivery.message.id)
        return part

    def settle(self, deliveries: Iterable[Delivery]) -> tuple[list[Parcel], list[Delivery]]:
        """Let go of deliveries; returns the parcels that are done by that, and what was not in
        hand.
        """
        done: list[Parcel] = []
        stale: list[Delivery] = []
        for delivery in deliveries:
            part = self._in_hand.pop(delivery.receipt, None)
            if part is None:
                stale.append(delivery)
                continue
            self.seclusion.settled(delivery.receipt)
            if not part.parcel.suspect:
                name = self._lane_of(delivery.message)
                self._turns.settled(name, self._waiting.get(name))
            part.parcel.unsettled.discard(delivery.receipt)
            if not part.parcel.unsettled:
                self._parcels.pop(part.parcel, None)
                done.append(part.parcel)
        self._wake_receiver()
        return done, stale

    def take_back(self) -> list[tuple[Parcel, list[Part]]]:
        """What waits of each parcel; it is forgotten by this, and so is a parcel that is done."""
        taken: dict[Parcel, list[Part]] = {}
        for part in chain(self._suspects, *self._waiting.values()):
            part.parcel.unsettled.discard(part.delivery.receipt)
            taken.setdefault(part.parcel, []).append(part)
        self._forget_waiting()
        for parcel in taken:
            if not parcel.unsettled:
                del self._parcels[parcel]
        return list(taken.items())

    def give_up_since(self, then: float) -> list[tuple[Parcel, list[Part], list[Part]]]:
        """The parcels that arrived before `then` and are not done.

        With what of each is in hand, and stays so, and what waited, and is forgotten by this.
        """
        given_up: list[tuple[Parcel, list[Part], list[Part]]] = []
        for parcel in list(self._parcels):
            if parcel.arrived > then or parcel.given_up or not parcel.unsettled:
                continue
            parcel.given_up = True
            waited = self._stop_waiting(parcel)
            parcel.unsettled.difference_update(part.delivery.receipt for part in waited)
            in_hand = [self._in_hand[receipt] for receipt in sorted(parcel.unsettled)]
            if not in_hand:
                del self._parcels[parcel]
            given_up.append((parcel, in_hand, waited))
        return given_up

    def lose_all(self) -> set[str]:
        """Forget everything: the server delivers what was not settled again.

        Returns the ids of the suspects that were not handed out.
        """
        spared = {part.delivery.message.id for part in self._suspects}
        self._forget_waiting()
        for part in self._in_hand.values():
            if not part.parcel.suspect:
                self._turns.settled(self._lane_of(part.delivery.message), None)
        self._in_hand.clear()
        self.seclusion.forget_all()
        self._parcels.clear()
        return spared

    def lost(self, message_id: str, count: int = 1) -> DeliveryLost:
        """The error for what is not in hand."""
        return DeliveryLost(
            f"queue {self._queue!r}: message {message_id!r} ({count} of this call) is not in this "
            "consumer's hand: it was settled before, or the consumer or its connection ended, and "
            "it went back to the queue and is delivered again"
        )

    def _forget_waiting(self) -> None:
        for name, waiting in self._waiting.items():
            waiting.clear()
            self._turns.withdraw(name)
        self._waiting.clear()
        self._suspects.clear()

    def _parts(self, parcel: Parcel, messages: Iterable[Message], attempt: int) -> list[Part]:
        self._parcels[parcel] = None
        parts = [
            Part(Delivery(message, attempt, next(self._receipts), parcel.suspect), parcel)
            for message in messages
        ]
        parcel.unsettled.update(part.delivery.receipt for part in parts)
        return parts

    def _hand_out(self, part: Part) -> Delivery:
        self._in_hand[part.delivery.receipt] = part
        return part.delivery

    def _stop_waiting(self, parcel: Parcel) -> list[Part]:
        if parcel.suspect:
            stopped = [part for part in self._suspects if part.parcel is parcel]
            self._suspects = deque(part for part in self._suspects if part.parcel is not parcel)
            self._wake_receiver()
            return stopped
        stopped = []
        names = {
            name
            for name, waiting in self._waiting.items()
            if any(part.parcel is parcel for part in waiting)
        }
        for name in names:
            waiting = self._waiting[name]
            stopped += (part for part in waiting if part.parcel is parcel)
            left = [part for part in waiting if part.parcel is not parcel]
            waiting.clear()
            waiting.extend(left)
            if not left:
                del self._waiting[name]
                self._turns.withdraw(name)
        return stopped

    def _lane_of(self, message: Message) -> str:
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
