"""The outcomes that a handler reports for its work, and the settlements that follow from them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from socratic_bench.events.codec import Event
from socratic_bench.ports.broker import Delivery

E_co = TypeVar("E_co", bound=Event, covariant=True)


@dataclass(slots=True, eq=False)
class Work(Generic[E_co]):
    """One decoded event to handle. Two deliveries of one event are two pieces of work."""

    event: E_co
    attempt: int
    """1 plus the number of counted failures."""


class Handled(NamedTuple):
    """The work is done once these events are published."""

    work: Work[Event]
    publish: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True)
class Postponed:
    """Deliver the work again after a while, without counting an attempt."""

    work: Work[Event]
    after: float
    """Seconds."""

    reason: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """Dead-letter the work: a redelivery cannot help."""

    work: Work[Event]
    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The handler broke on this work.

    If the store or the broker is unavailable, the work waits in hand. Otherwise the failure counts
    as an attempt; the retry policy decides about further ones, then the work is rejected.
    """

    work: Work[Event]
    error: Exception


@dataclass(frozen=True, slots=True)
class Emit:
    """Publish these events now; their work continues."""

    publish: tuple[Event, ...]


Outcome = Handled | Postponed | Rejected | Failed | Emit

Handler = Callable[[Sequence[Work[E_co]]], AsyncGenerator[Sequence[Outcome], None]]
"""Takes a batch of work and yields outcomes, in any order, several at a time.

Every piece of work gets exactly one of Handled, Postponed, Rejected and Failed. The caller may
cancel a handler at any point; the handler then cleans up after itself.
"""


class Ack(NamedTuple):
    """The delivery is done; the broker forgets it."""

    delivery: Delivery


@dataclass(frozen=True, slots=True)
class RetryLater:
    """Deliver it again after `delay` seconds."""

    delivery: Delivery
    delay: float
    reason: str
    counted: bool = True
    """Whether this counts as one of the message's attempts."""


@dataclass(frozen=True, slots=True)
class DeadLetterIt:
    """The delivery becomes a dead letter: a redelivery cannot help."""

    delivery: Delivery
    reason: str


Settlement = Ack | RetryLater | DeadLetterIt
