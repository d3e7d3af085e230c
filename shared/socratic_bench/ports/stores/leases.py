"""The store role that grants calls: leases, budgets and live owners.

A lease guards the start of one call and the money that the call may cost, never its reply. The
caller makes its id, so that the caller can repeat every operation whose answer was lost.
docs/design/call-path.md shows how leases end.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from socratic_bench.domain.leasing import Account, LeaseAnswer
from socratic_bench.domain.trouble import Trouble


class LeaseKey(NamedTuple):
    """The key of a lease: its turn, and its id."""

    experiment_id: str
    run_id: str
    turn: int
    lease_id: str
    """Unique for every call that a runner wants to make."""


class Lease(NamedTuple):
    """The right to begin one call for one turn, as a runner claims and then holds it."""

    key: LeaseKey
    seconds: float
    """The most that the lease lasts: the deadline of its call, and a margin."""

    reserve: int = 0
    """The most nanodollars that the call may cost; 0 for a price of zero or an unknown one."""


class WaitingTurn(NamedTuple):
    """A turn whose call waits in a provider's batch."""

    lease: LeaseKey
    batch: str
    """The owner of the lease, as `domain.provider_batch` names it."""

    reserve: int
    """As in `Lease`."""


class CallEnd(NamedTuple):
    """A call that ended without a reply."""

    lease: LeaseKey
    billed: bool
    """Whether the provider may bill the call all the same: its reservation stays committed."""


class ModelInHand(NamedTuple):
    """A model of an experiment, with an owner's runs of it in hand."""

    experiment_id: str
    model_id: str


@dataclass(frozen=True, slots=True)
class Spending:
    """The cost of an experiment's calls, in nanodollars."""

    budget: int | None
    """The cap; None: no cap."""

    committed: int
    """Money spent and reserved. A call of unknown cost, or of a dead owner, counts with the most
    that it could cost."""

    in_flight: int
    """The part of `committed` that is reserved under leases of live owners."""

    exhausted: bool
    """Whether the runner gave a call up because the budget did not suffice, and no submit has
    raised or removed the budget since."""

    paid: int = 0
    """The part of `committed` that is the known costs of calls."""

    reused: int = 0
    """The known costs of adopted responses, which another experiment paid: no part of
    `committed`."""

    @classmethod
    def of(cls, account: Account, in_flight: int) -> Spending:
        """Return the spending of an account, given its reservations under live owners."""
        known = account.paid, account.reused
        return cls(account.budget, account.committed, in_flight, account.exhausted, *known)

    @property
    def possibly_paid(self) -> int:
        """The most that the ended calls of unknown cost can have cost.

        A version that did not count `paid` leaves all it settled here.
        """
        return max(0, self.committed - self.in_flight - self.paid)


@dataclass(frozen=True, slots=True)
class CallCount:
    """The number of calls to models."""

    calls: int
    """Calls begun: leases granted and not given back."""

    turns: int
    """Turns with at least one call."""


class Leases(Protocol):
    """Grants leases within budgets. An owner is one process of a runner, or one invocation of a
    function.

    The store judges time by its own clock, and claims by `domain.leasing`. An owner is dead once it
    has left, or once its last heartbeat is older than DEAD_AFTER_SECONDS; an owner without any
    heartbeat counts as alive.
    """

    async def take_leases(
        self, leases: Sequence[Lease], owner: str, *, may_judge: bool = True
    ) -> Sequence[LeaseAnswer]:
        """Claim leases for `owner`; serves and answers the claims in their order.

        The store grants a turn without a stored response if it is free: the turn has no open lease,
        or the open one is `owner`'s own, its owner is dead, or its time is over and its owner, if
        alive, did not say with its last heartbeat that it is overdue. If the claim
        reserves money, the budget must have room for it beside all that is committed: the store
        never commits more than the budget, however many owners claim at once. A granted lease
        counts as a call. The reservation of a lease that was taken over stays committed until that
        lease is settled.

        Only a claimant that has heard from the store all the while `may_judge` the silence of
        others: without that, a silent owner may be dead, or the store was away for everybody. To
        other claimants a silent owner counts as alive, and as overdue; one that left is dead.

        The store grants a claim again whose lease `owner` already holds, and changes nothing.

        Once an experiment's stored state allows no calls, the store grants no claim of it, not
        even a repeated one.

        One claim is atomic: one transaction reads the experiment's state, the turn's response and
        lease, and the budget, and changes lease and budget. Claims depend on each other only by
        the room in their budget.
        """
        ...

    async def give_back_leases(self, leases: Collection[LeaseKey]) -> None:
        """End leases whose calls did not begin, as if the store had not granted them.

        Ended leases stay as they are. Each lease and its reservation are atomic.
        """
        ...

    async def end_calls(self, ends: Collection[CallEnd]) -> None:
        """End leases whose calls ended without a reply; ended leases stay as they are.

        Their turns are free. Their reservations leave the calls in flight, and stay committed only
        for a call that may be billed. Each lease and its reservation are atomic.
        """
        ...

    async def heartbeat(
        self,
        owner: str,
        in_hand: Collection[ModelInHand],
        troubles: Collection[Trouble] = (),
        *,
        overdue: bool = False,
    ) -> None:
        """Note that `owner` is alive, its models in hand, and their troubles.

        `overdue` tells whether it still has to store the outcome of a call whose lease is over, or
        will be before its next heartbeats.

        A runner calls this every few seconds while it has runs in hand. It revives an owner that
        counted as dead.
        """
        ...

    async def leave(self, owner: str) -> None:
        """Note that `owner` has left: its leases are free, their reservations stay committed."""
        ...

    async def leave_others(self, owner: str) -> None:
        """Note that every owner except `owner` has left; providers' batches stay."""
        ...

    async def waiting_turns(self, experiment_id: str) -> Sequence[WaitingTurn]:
        """Return the open leases of providers' batches, in no order."""
        ...

    async def models_in_hand(self, experiment_id: str) -> Mapping[str, int]:
        """Return the number of live owners with runs in hand, by model of an experiment."""
        ...

    async def troubles(self, experiment_id: str) -> Sequence[Trouble]:
        """Return the latest troubles of an experiment's models by live owner, in no order."""
        ...

    async def calls(self, experiment_id: str) -> CallCount:
        """Count the calls of an experiment."""
        ...

    async def spending(self, experiment_id: str) -> Spending:
        """Return the cost of an experiment's calls so far. Raises StoreError for an unknown one."""
        ...

    async def spending_of(self, experiment_ids: Collection[str]) -> Mapping[str, Spending]:
        """Return the cost of the calls of each of these experiments, unknown ones left out."""
        ...

    async def exhaust(self, experiment_id: str, reserve: int) -> None:
        """Mark the budget as exhausted, until it is raised or removed.

        Without a budget, or with room for a call that may cost `reserve`, nothing changes. The
        store compares and marks the budget atomically.
        """
        ...
