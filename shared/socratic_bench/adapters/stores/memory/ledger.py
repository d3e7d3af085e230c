"""The money that experiments spent and reserved."""

from __future__ import annotations

from typing import Final

from socratic_bench.adapters.stores.memory.state import StoreState
from socratic_bench.errors import StoreRefused
from socratic_bench.ports.stores.leases import LeaseKey
from socratic_bench.ports.stores.responses import TurnKey

MOST_NANODOLLARS: Final = 2**63 - 1
"""The largest amount that every store can count."""


def commit(state: StoreState, experiment_id: str, nanodollars: int) -> None:
    """Add to the committed money of an experiment, if it is registered.

    Raises StoreRefused, and changes nothing, for a number that is too large.
    """
    account = state.accounts.get(experiment_id)
    committed = 0 if account is None else account.committed
    if committed + nanodollars > MOST_NANODOLLARS:
        raise StoreRefused(f"experiment {experiment_id} would cost more than a store can count")
    if account is not None:
        account.committed += nanodollars


def settle(state: StoreState, lease: LeaseKey, cost: int | None, *, begun: bool = True) -> bool:
    """End a lease; returns whether it was open.

    `cost` replaces the reservation; None: the reservation stays committed. A call that did not
    begin does not count. Raises StoreRefused as `commit` does.
    """
    calls = state.facts_of(lease.experiment_id).calls.get(TurnKey(lease.run_id, lease.turn))
    if calls is None or (reserved := calls.reserved_under(lease.lease_id)) is None:
        return False
    if cost is not None:
        commit(state, lease.experiment_id, cost - reserved)
    calls.end(lease.lease_id)
    calls.calls -= not begun
    return True
