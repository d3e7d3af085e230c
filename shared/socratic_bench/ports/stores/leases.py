"""The role of the store that grants calls: leases, budgets, and which runners are alive.

A lease guards the start of one call and the money that the call may cost, never its reply. It has
an id of its own, made by the caller, so that a caller can repeat every operation whose answer was
lost.
docs/design/call-path.md tells how leases end.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, NamedTuple, Protocol

from socratic_bench.domain.trouble import Trouble

DEAD_AFTER_SECONDS: Final = 15.0
"""An owner whose last heartbeat is older is dead."""


class LeaseKey(NamedTuple):
    """One lease: which turn it is for, and which call for that turn."""

    experiment_id: str
    run_id: str
    turn: int
    lease_id: str
    """Unique for every call that a runner wants to begin."""


class Claim(NamedTuple):
    """A request for a lease."""

    lease: LeaseKey
    seconds: float
    """How long the lease lasts at most: as long as its own call may take, and a margin."""

    reserve: int = 0
    """Nanodollars that the call may cost at most; 0 where its price is zero or unknown."""


class LeaseAnswer(Enum):
    """The store's answer to a claim."""

    GRANTED = auto()
    HELD = auto()
    """Another live owner has a lease of this turn."""

    ANSWERED = auto()
    """The response of this turn is stored."""

    OVER_BUDGET = auto()
    """The call may cost more than is left of the budget now."""

    STOPPED = auto()
    """The experiment is paused, cancelled or deleted."""


class CallEnd(NamedTuple):
    """A call that ended without a reply."""

    lease: LeaseKey
    billed: bool
    """Whether the provider may bill the call all the same: its reservation stays committed."""


class ModelInHand(NamedTuple):
    """A model of an experiment of which an owner has runs in hand."""

    experiment_id: str
    model_id: str


@dataclass(frozen=True, slots=True)
class Spending:
    """What an experiment's calls cost, in nanodollars."""

    budget: int | None
    """The cap; None: there is none."""

    committed: int
    """What was spent, and what is reserved. A call that ended without saying what it cost, or whose
    owner died, counts with what it could cost at most."""

    in_flight: int
    """The part of `committed` that is reserved under leases of live owners."""

    exhausted: bool
    """Whether a call was given up since the budget does not suffice for it. Over once the budget is
    raised or taken away."""


@dataclass(frozen=True, slots=True)
class CallCount:
    """How often models were called."""

    calls: int
    """Calls that were begun: leases that were granted and not given back."""

    turns: int
    """Turns for which at least one call was begun."""


class Leases(Protocol):
    """Grants leases within budgets. An owner is one process of a runner, or one invocation of a
    function.

    The store judges time by its own clock. An owner is dead once it has left, or once its last
    heartbeat is older than DEAD_AFTER_SECONDS; one that never wrote a heartbeat is not judged.
    """

    async def take_leases(self, claims: Sequence[Claim], owner: str) -> Sequence[LeaseAnswer]:
        """Take leases for `owner`; answers in the order of the claims, which are served in it.

        A turn without a stored response is granted if it is free: no lease of it is open, the open
        one is `owner`'s own, its owner is dead, or its time is over. If the claim reserves money,
        the budget must have room for it besides all that is committed: however many claim at
        once, the store never commits more than the budget. A lease that is granted counts as a
        call. The reservation of a lease that is taken over stays committed until that lease is
        settled.

        A claim whose lease `owner` holds already is granted again and changes nothing.

        Once a change of state is stored in which no call may begin, the store grants nothing of
        that experiment, such a claim neither.

        One claim is atomic: the experiment's state, the turn's response and lease, and the budget
        are read, and lease and budget changed, in one transaction. Claims are independent of each
        other but for the room that each leaves in its budget.
        """
        ...

    async def give_back_leases(self, leases: Collection[LeaseKey]) -> None:
        """End leases under which no call was begun: it is as if they were not granted.

        Nothing happens for leases that are over. Each lease and its reservation are atomic.
        """
        ...

    async def end_calls(self, ends: Collection[CallEnd]) -> None:
        """End leases whose calls ended without a reply; nothing happens for those that are over.

        Their turns are free. What they reserved is no longer in flight, and stays committed only
        for a call that may be billed. Each lease and its reservation are atomic.
        """
        ...

    async def heartbeat(
        self,
        owner: str,
        in_hand: Collection[ModelInHand],
        troubles: Collection[Trouble] = (),
    ) -> None:
        """Say that `owner` is alive, of which models it has runs in hand, and which of them fail.

        A runner calls this every few seconds while it has runs in hand. An owner that was taken for
        dead is alive again.
        """
        ...

    async def leave(self, owner: str) -> None:
        """Say that `owner` is gone: its leases are free, and what they reserved stays committed."""
        ...

    async def leave_others(self, owner: str) -> None:
        """Say that every other owner is gone: `owner` has the store to itself."""
        ...

    async def models_in_hand(self, experiment_id: str) -> Mapping[str, int]:
        """The models of an experiment that live owners have runs of, and how many owners."""
        ...

    async def troubles(self, experiment_id: str) -> Sequence[Trouble]:
        """The troubles of an experiment's models, as each live owner said last, in no order."""
        ...

    async def calls(self, experiment_id: str) -> CallCount:
        """How often models were called for an experiment."""
        ...

    async def spending(self, experiment_id: str) -> Spending:
        """What an experiment's calls cost so far. Raises StoreError for one that is not there."""
        ...

    async def spending_of(self, experiment_ids: Collection[str]) -> Mapping[str, Spending]:
        """What the calls of each of these experiments cost, those that are not there left out."""
        ...

    async def exhaust(self, experiment_id: str, reserve: int) -> None:
        """Mark the budget as exhausted, until it is raised or taken away.

        Nothing happens where there is room for a call that may cost `reserve`, or no budget. The
        budget is compared and marked atomically.
        """
        ...
