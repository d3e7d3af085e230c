"""The grant of one lease."""

from __future__ import annotations

from datetime import datetime, timedelta

from socratic_bench.adapters.stores.memory.ledger import commit
from socratic_bench.adapters.stores.memory.state import StoreState, TurnCalls
from socratic_bench.domain.leasing import (
    Claimant,
    Holder,
    LeaseAnswer,
    OpenLease,
    TurnStanding,
    answer_to,
)
from socratic_bench.ports.stores.leases import Lease
from socratic_bench.ports.stores.responses import TurnKey


def holder(state: StoreState, name: str, now: datetime) -> Holder:
    """Return the standing of an owner."""
    owner = state.owners.get(name)
    if owner is None:
        return Holder.UNKNOWN
    silent = (now - owner.seen_at).total_seconds()
    return Holder.of(silent, is_gone=owner.gone, overdue=owner.overdue)


def grant(
    state: StoreState, lease: Lease, owner: str, now: datetime, *, may_judge: bool
) -> LeaseAnswer:
    """Lease a turn to an owner if the rule of leases allows it.

    Raises StoreRefused, and changes nothing, for a reservation that is too large to count.
    """
    key = lease.key
    turn = TurnKey(key.run_id, key.turn)
    calls = state.facts_of(key.experiment_id).calls.get(turn) or TurnCalls()
    claimant = Claimant(owner, key.lease_id, lease.reserve, may_judge)
    answer = answer_to(claimant, _standing(state, key.experiment_id, turn, calls, now))
    is_held_already = (calls.owner, calls.lease_id) == (owner, key.lease_id)
    if answer is not LeaseAnswer.GRANTED or is_held_already:
        return answer
    commit(state, key.experiment_id, lease.reserve)
    if calls.lease_id:
        calls.lapsed[calls.lease_id] = calls.reserved
    calls.calls += 1
    calls.owner = owner
    calls.leased_until = now + timedelta(seconds=lease.seconds)
    calls.reserved, calls.lease_id = lease.reserve, key.lease_id
    state.facts_to_change(key.experiment_id).calls[turn] = calls
    return answer


def _standing(
    state: StoreState, experiment_id: str, turn: TurnKey, calls: TurnCalls, now: datetime
) -> TurnStanding:
    experiment = state.experiments.get(experiment_id)
    account = state.accounts.get(experiment_id)
    is_over = calls.leased_until is None or calls.leased_until < now
    return TurnStanding(
        may_call=experiment is None or experiment.state.calls_may_begin,
        is_answered=state.response(turn) is not None,
        open=(
            OpenLease(calls.owner, calls.lease_id, is_over, holder(state, calls.owner, now))
            if calls.lease_id
            else None
        ),
        left=None if account is None else account.left,
    )
