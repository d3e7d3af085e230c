"""The rule of leases: who may begin the call of a turn, given what a store knows.

A store keeps the times and the money; it asks this rule within one transaction, or has a statement
that says the same. Times are in microseconds on the store's clock, money is in nanodollars.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, NamedTuple, TypeVar

from socratic_bench.domain.trouble import Trouble
from socratic_bench.errors import StoreRefused

SECOND: Final = 1_000_000
"""In microseconds."""

DEAD_AFTER_SECONDS: Final = 15.0
"""Seconds: an owner whose last heartbeat is older is dead."""

FORGOTTEN_AFTER: Final = 7 * 24 * 3600 * SECOND
"""Silence after which a store may forget an owner: all its leases have expired."""

MOST_NANODOLLARS: Final = 2**63 - 1
"""The largest amount that every store can count."""

Turn = TypeVar("Turn", bound=Hashable)


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


@dataclass(frozen=True, slots=True)
class Owner:
    """An owner of leases, by its last heartbeat."""

    seen_at: int
    gone: bool = False
    overdue: bool = False
    in_hand: frozenset[tuple[str, str]] = frozenset()
    """The experiments and models that it has runs of in hand."""

    troubles: tuple[Trouble, ...] = ()

    def holder(self, now: int) -> Holder:
        """Return its standing as the owner of a lease."""
        silent = (now - self.seen_at) / SECOND
        return Holder.of(silent, is_gone=self.gone, overdue=self.overdue)


class OpenLease(NamedTuple):
    """The lease of a turn whose call has not ended."""

    owner: str
    lease_id: str
    is_over: bool
    """Whether its time has passed."""

    holder: Holder

    def is_of(self, claimant: Claimant) -> bool:
        """Whether it is the lease that is claimed: the claim is repeated."""
        return (self.owner, self.lease_id) == (claimant.owner, claimant.lease_id)


@dataclass(slots=True)
class TurnCalls:
    """The calls for a turn: their number, and their leases."""

    calls: int = 0
    owner: str = ""
    until: int = 0
    """The end of the open lease; 0: no lease is open."""

    reserved: int = 0
    lease_id: str = ""
    lapsed: dict[str, int] = field(default_factory=dict)
    """The reservations of leases that were taken over, by lease id."""

    def lease(self, lease_id: str, owner: str, until: int, reserve: int) -> None:
        """Begin a lease and count its call; the reservation of an open one stays."""
        if self.lease_id:
            self.lapsed[self.lease_id] = self.reserved
        self.calls += 1
        self.lease_id, self.owner, self.until, self.reserved = lease_id, owner, until, reserve

    def reserved_under(self, lease_id: str) -> int | None:
        """Return the reservation of an open or lapsed lease; None for an ended one."""
        if not lease_id:
            return None
        return self.reserved if lease_id == self.lease_id else self.lapsed.get(lease_id)

    def end(self, lease_id: str, *, begun: bool = True) -> None:
        """End an open or lapsed lease. A call that did not begin does not count."""
        if lease_id == self.lease_id:
            self.lease_id, self.until, self.reserved = "", 0, 0
        else:
            del self.lapsed[lease_id]
        self.calls -= not begun

    def open(self, owners: Mapping[str, Owner], now: int) -> OpenLease | None:
        """Return the open lease."""
        if not self.lease_id:
            return None
        return OpenLease(self.owner, self.lease_id, self.until < now, self._holder(owners, now))

    def in_flight(self, owners: Mapping[str, Owner], now: int) -> int:
        """Return the reservation of a lease whose time is not over and whose owner is alive."""
        return self.reserved if self.until >= now and not self._holder(owners, now).is_dead else 0

    def _holder(self, owners: Mapping[str, Owner], now: int) -> Holder:
        owner = owners.get(self.owner)
        return Holder.UNKNOWN if owner is None else owner.holder(now)


@dataclass(slots=True)
class Account:
    """The budget of an experiment, and the money that its calls spent and reserved."""

    budget: int | None = None
    """None: no cap."""

    committed: int = 0
    exhausted: bool = False
    """Whether a call was given up for lack of money, and no higher budget was set since."""

    paid: int = 0
    """The known costs of calls, a part of `committed`."""

    reused: int = 0
    """The known costs of adopted responses, which another experiment paid."""

    @property
    def left(self) -> int | None:
        """The rest of the budget: None without one, negative after it was lowered."""
        return None if self.budget is None else self.budget - self.committed

    def commit(self, nanodollars: int, experiment_id: str) -> None:
        """Add to the committed money.

        Raises StoreRefused, and changes nothing, for a number that is too large.
        """
        if self.committed + nanodollars > MOST_NANODOLLARS:
            raise StoreRefused(f"experiment {experiment_id} would cost more than a store can count")
        self.committed += nanodollars

    def pay(self, cost: int, experiment_id: str, *, reserved: int = 0) -> None:
        """Replace a call's reservation by its known cost. Raises StoreRefused as `commit` does."""
        self.commit(cost - reserved, experiment_id)
        self.paid += cost

    def set_budget(self, cap: int | None) -> None:
        """Set the cap: a raised or removed budget is no longer exhausted."""
        is_lifted = cap is None or self.budget is None or cap > self.budget
        self.exhausted = self.exhausted and not is_lifted
        self.budget = cap


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
        if held.is_of(claimant):
            return LeaseAnswer.GRANTED
        if not _may_take_over(claimant, held):
            return LeaseAnswer.HELD
    if claimant.reserve and turn.left is not None and claimant.reserve > turn.left:
        return LeaseAnswer.OVER_BUDGET
    return LeaseAnswer.GRANTED


def answers_in_order(
    claims: Iterable[tuple[Turn, str]], answers: Mapping[Turn, LeaseAnswer]
) -> list[LeaseAnswer]:
    """Return the answers to claims of a turn under a lease id, given that to each turn's first.

    Of several claims of one turn at once, the first one holds it.
    """
    firsts: dict[Turn, str] = {}
    return [
        answers[turn]
        if firsts.setdefault(turn, lease_id) == lease_id or answers[turn] is LeaseAnswer.ANSWERED
        else LeaseAnswer.HELD
        for turn, lease_id in claims
    ]


def _may_take_over(claimant: Claimant, held: OpenLease) -> bool:
    if held.owner == claimant.owner or held.holder is Holder.GONE:
        return True
    if held.holder is Holder.SILENT:
        return claimant.may_judge
    return held.is_over and held.holder is not Holder.OVERDUE
