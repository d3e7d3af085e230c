"""What a handler says about the work it was given."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from socratic_bench.events.codec import Event

E_co = TypeVar("E_co", bound=Event, covariant=True)


@dataclass(slots=True, eq=False)
class Work(Generic[E_co]):
    """One decoded event to be handled. Two deliveries of one event are two pieces of work."""

    event: E_co
    attempt: int
    """1, and one more for every failure that counted."""


class Handled(NamedTuple):
    """The work is done once these events are published."""

    work: Work[Event]
    publish: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True)
class Postponed:
    """Not now: deliver it again after a while. Does not count as an attempt."""

    work: Work[Event]
    after: float
    """Seconds."""

    reason: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """Never: no redelivery can help."""

    work: Work[Event]
    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The handler broke on this work.

    It waits in hand where the store or the broker is unavailable. Otherwise it counts as an
    attempt, and is handled again as the retry policy says, then rejected.
    """

    work: Work[Event]
    error: Exception


@dataclass(frozen=True, slots=True)
class Emit:
    """Publish these now; the work they come from goes on."""

    publish: tuple[Event, ...]


Outcome = Handled | Postponed | Rejected | Failed | Emit

Handler = Callable[[Sequence[Work[E_co]]], AsyncGenerator[Sequence[Outcome], None]]
"""A batch of work in, outcomes out, in any order, as many at a time as are ready.

Every piece of work gets exactly one of Handled, Postponed, Rejected and Failed. The caller may
cancel a handler at any point; the handler then cleans up after itself.
"""
