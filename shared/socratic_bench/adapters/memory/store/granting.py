"""The grant of one lease: checks of the turn and of the budget."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from socratic_bench.adapters.memory.store.ledger import commit
from socratic_bench.adapters.memory.store.state import Owner, StoreState, TurnCalls
from socratic_bench.ports.stores.leases import DEAD_AFTER_SECONDS, Lease, LeaseAnswer
from socratic_bench.ports.stores.responses import TurnKey


class Claimant(NamedTuple):
    """An owner that claims leases, and the time."""

    owner: str
    now: datetime
    may_judge: bool
    """Whether it may take a silent owner for dead."""


def is_alive(owner: Owner, now: datetime) -> bool:
    return not owner.gone and owner.seen_at >= now - timedelta(seconds=DEAD_AFTER_SECONDS)


def is_dead(state: StoreState, name: str, now: datetime) -> bool:
    """Whether an owner is dead; an owner without any heartbeat counts as alive."""
    owner = state.owners.get(name)
    return owner is not None and not is_alive(owner, now)


def grant(state: StoreState, lease: Lease, claimant: Claimant) -> LeaseAnswer:
    """Lease a turn to the claimant if the port's conditions hold.

    Raises StoreRefused, and changes nothing, for a reservation that is too large to count.
    """
    key = lease.key
    turn = TurnKey(key.run_id, key.turn)
    experiment = state.experiments.get(key.experiment_id)
    if experiment is not None and not experiment.state.calls_may_begin:
        return LeaseAnswer.STOPPED
    if state.response(turn) is not None:
        return LeaseAnswer.ANSWERED
    calls = state.facts_of(key.experiment_id).calls.get(turn) or TurnCalls()
    if calls.lease_id:
        if (calls.owner, calls.lease_id) == (claimant.owner, key.lease_id):
            return LeaseAnswer.GRANTED
        if not _may_take_over(state, calls, claimant):
            return LeaseAnswer.HELD
    account = state.accounts.get(key.experiment_id)
    left = None if account is None else account.left
    if lease.reserve and left is not None and lease.reserve > left:
        return LeaseAnswer.OVER_BUDGET
    commit(state, key.experiment_id, lease.reserve)
    if calls.lease_id:
        calls.lapsed[calls.lease_id] = calls.reserved
    calls.calls += 1
    calls.owner = claimant.owner
    calls.leased_until = claimant.now + timedelta(seconds=lease.seconds)
    calls.reserved, calls.lease_id = lease.reserve, key.lease_id
    state.facts_to_change(key.experiment_id).calls[turn] = calls
    return LeaseAnswer.GRANTED


def _may_take_over(state: StoreState, calls: TurnCalls, claimant: Claimant) -> bool:
    """Whether the open lease of a turn is the claimant's, a dead owner's, or over and not awaited
    by its owner.
    """
    if calls.owner == claimant.owner:
        return True
    owner = state.owners.get(calls.owner)
    is_over = calls.leased_until is None or calls.leased_until < claimant.now
    if owner is None or owner.gone:
        return is_over or owner is not None
    if not is_alive(owner, claimant.now):
        return claimant.may_judge
    return is_over and not owner.overdue
