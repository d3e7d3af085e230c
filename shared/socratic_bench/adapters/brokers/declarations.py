"""What one broker object has declared, and the errors of a caller who takes it for granted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, Generic, TypeVar

from socratic_bench.errors import BrokerClosed, BrokerError, UnroutableMessage
from socratic_bench.events.codec import Message
from socratic_bench.ports.broker import Delivery, WorkQueue

DELIVERY_LIMIT: Final = 20
"""Attempts after which a broker dead-letters a message."""

Q = TypeVar("Q")
"""A queue as one adapter knows it."""


class Declarations(Generic[Q]):
    """The queues and broadcasts that one broker object has declared."""

    def __init__(self) -> None:
        self.work: dict[str, WorkQueue] = {}
        """The declared queues by name, as the caller gave them."""
        self.broadcasts: set[str] = set()
        self._queues: dict[str, Q] = {}
        self._takers: defaultdict[str, list[Q]] = defaultdict(list)

    def is_new(self, queue: WorkQueue) -> bool:
        """Tell whether a queue is to be added.

        Raises BrokerError for one that was declared otherwise.
        """
        known = self.work.get(queue.name)
        if known is not None and known != queue:
            raise BrokerError(
                f"queue {queue.name!r} takes type {known.event_type!r} and cannot be declared for "
                f"{queue.event_type!r} too; give one of them another name"
            )
        return known is None

    def add(self, queue: WorkQueue, own: Q) -> None:
        """Add a new queue, in the adapter's own form too."""
        self.work[queue.name] = queue
        self._queues[queue.name] = own
        self._takers[queue.event_type].append(own)

    def queues(self) -> Iterable[Q]:
        """Return all declared queues."""
        return self._queues.values()

    def queue(self, name: str) -> Q:
        """Return a declared queue. Raises BrokerError."""
        try:
            return self._queues[name]
        except KeyError:
            raise BrokerError(f"queue {name!r} is not declared; declare it first") from None

    def takers(self, event_type: str) -> Sequence[Q]:
        """Return the queues that take a type."""
        return self._takers.get(event_type, ())

    def check_routable(self, messages: Iterable[Message]) -> None:
        """Raise UnroutableMessage for a message that neither a queue nor a broadcast takes."""
        for message in messages:
            if message.type not in self._takers and message.type not in self.broadcasts:
                raise UnroutableMessage(
                    f"message {message.id!r}: no queue takes type {message.type!r} and it is not "
                    "a broadcast; declare one or the other before publishing"
                )

    def broadcasts_among(self, event_types: Iterable[str]) -> tuple[str, ...]:
        """Return these types once each. Raises BrokerError for one that is not a broadcast."""
        for event_type in event_types:
            if event_type not in self.broadcasts:
                raise BrokerError(
                    f"type {event_type!r} was not declared as a broadcast; declare it first"
                )
        return tuple(dict.fromkeys(event_types))


def broker_closed() -> BrokerClosed:
    """Return the error of every call after `close`."""
    return BrokerClosed("the broker was closed; open another one")


def groups_together(queue: str) -> BrokerError:
    """Return the error of removing a group from a queue that does not know any."""
    return BrokerError(f"queue {queue!r} does not keep its groups apart")


def attempts_of_copy(delivery: Delivery, delivery_limit: int, *, counted: bool) -> int | None:
    """Return the counted retries of the copy that retries a delivery.

    None if it had its last attempt: the broker dead-letters it instead.
    """
    if counted and delivery.attempt >= delivery_limit:
        return None
    return delivery.attempt if counted else delivery.attempt - 1
