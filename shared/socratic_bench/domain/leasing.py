"""The rule of leases: who may begin the call of a turn, given what a store knows.

A store keeps the times and the money; it asks this rule within one transaction, or has a statement
that says the same.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final, NamedTuple

DEAD_AFTER_SECONDS: Final = 15.0
"""Seconds: an owner whose last heartbeat is older is dead."""


class LeaseAnswer(Enum):
    """The store's answer to a claim."""

    GRANTED = auto()
    HELD = auto()
    """Another live owner has a lease of this turn."""

    ANSWERED = auto()
    """The store has the response of this turn."""

    OVER_BUDGET = auto()
    """The call may cost more than the rest of the budget."""

    STOPPED = auto()
    """The experiment is paused, cancelled or deleted."""


class Holder(Enum):
    """The owner of an open lease, by its heartbeats."""

    UNKNOWN = auto()
    """It sent none: it counts as alive."""

    ALIVE = auto()
    OVERDUE = auto()
    """It is alive, and said with its last heartbeat that it waits for calls beyond their time."""

    SILENT = auto()
    """Its last heartbeat is older than DEAD_AFTER_SECONDS."""

    GONE = auto()
    """It has left."""

    @classmethod
    def of(cls, silent_seconds: float, *, is_gone: bool, overdue: bool) -> Holder:
        """Return the standing of an owner whose last heartbeat is this old."""
        if is_gone:
            return cls.GONE
        if silent_seconds > DEAD_AFTER_SECONDS:
            return cls.SILENT
        return cls.OVERDUE if overdue else cls.ALIVE

    @property
    def is_dead(self) -> bool:
        return self in (Holder.SILENT, Holder.GONE)


class OpenLease(NamedTuple):
    """The lease of a turn whose call has not ended."""

    owner: str
    lease_id: str
    is_over: bool
    """Whether its time has passed."""

    holder: Holder


class TurnStanding(NamedTuple):
    """What a store knows of a turn."""

    may_call: bool
    """Whether calls of the experiment may begin."""

    is_answered: bool
    open: OpenLease | None
    left: int | None
    """The rest of the budget in nanodollars; None: no cap."""


class Claimant(NamedTuple):
    """An owner that claims a lease."""

    owner: str
    lease_id: str
    reserve: int
    """The most nanodollars that the call may cost."""

    may_judge: bool
    """Whether it may take a silent owner for dead."""


def answer_to(claimant: Claimant, turn: TurnStanding) -> LeaseAnswer:
    """Return the answer to a claim.

    A repeated claim of the same lease is granted again. A lease is taken over from its own owner,
    from a dead one, or where its time is over and its owner is not overdue.
    """
    if not turn.may_call:
        return LeaseAnswer.STOPPED
    if turn.is_answered:
        return LeaseAnswer.ANSWERED
    if (held := turn.open) is not None:
        if (held.owner, held.lease_id) == (claimant.owner, claimant.lease_id):
            return LeaseAnswer.GRANTED
        if not _may_take_over(claimant, held):
            return LeaseAnswer.HELD
    if claimant.reserve and turn.left is not None and claimant.reserve > turn.left:
        return LeaseAnswer.OVER_BUDGET
    return LeaseAnswer.GRANTED


def _may_take_over(claimant: Claimant, held: OpenLease) -> bool:
    if held.owner == claimant.owner or held.holder is Holder.GONE:
        return True
    if held.holder is Holder.SILENT:
        return claimant.may_judge
    return held.is_over and held.holder is not Holder.OVERDUE
