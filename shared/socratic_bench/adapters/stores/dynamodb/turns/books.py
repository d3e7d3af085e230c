"""The turns and the account of one experiment, as read, and the changes that one call makes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from socratic_bench.adapters.stores.dynamodb.table import keys
from socratic_bench.adapters.stores.dynamodb.table.items import Item, Value, at
from socratic_bench.adapters.stores.dynamodb.table.transaction import Transaction
from socratic_bench.adapters.stores.dynamodb.turns.account import Account
from socratic_bench.adapters.stores.dynamodb.turns.turn import Turn
from socratic_bench.errors import StoreRefused
from socratic_bench.ports.stores.leases import LeaseKey
from socratic_bench.ports.stores.responses import TurnKey

MOST_NANODOLLARS: Final = 2**63 - 1
"""The largest amount that every store can count."""


class Books:
    """Changes turns in memory, and writes all changes in one transaction."""

    def __init__(self, experiment_id: str, account: Account, turns: Mapping[TurnKey, Turn]) -> None:
        self.experiment_id = experiment_id
        self.account = account
        self.turns = turns
        self._committed = 0
        self._calls = 0
        self._turns = 0
        self._reserved = 0
        """The money reserved by new leases."""

        self._has_new_lease = False

    @property
    def left(self) -> int | None:
        """The rest of the budget: None without one, negative after it was lowered."""
        account = self.account
        if account.budget is None:
            return None
        return account.budget - account.committed - self._committed

    def commit(self, nanodollars: int) -> None:
        """Add to the committed money, if the experiment is registered.

        Raises StoreRefused for a number that is too large.
        """
        before = self.account.committed + self._committed if self.account.is_registered else 0
        if before + nanodollars > MOST_NANODOLLARS:
            raise StoreRefused(
                f"experiment {self.experiment_id} would cost more than a store can count"
            )
        if self.account.is_registered:
            self._committed += nanodollars

    def lease(self, turn: Turn, lease: LeaseKey, owner: str, until: int, reserve: int) -> None:
        """Begin a lease, count its call and commit its reservation."""
        self.commit(reserve)
        self._turns += not turn.calls
        self._calls += 1
        self._reserved += reserve
        self._has_new_lease = True
        turn.lease(lease.lease_id, owner, until, reserve)

    def settle(self, lease: LeaseKey, cost: int | None, *, begun: bool = True) -> bool:
        """End a lease; returns whether it was open.

        `cost` replaces the reservation; None: the reservation stays committed. A call that did not
        begin does not count. Raises StoreRefused as `commit` does.
        """
        turn = self.turns[TurnKey(lease.run_id, lease.turn)]
        if (reserved := turn.reserved_under(lease.lease_id)) is None:
            return False
        if cost is not None:
            self.commit(cost - reserved)
        turn.end(lease.lease_id)
        if not begun:
            turn.calls -= 1
            self._calls -= 1
            self._turns -= not turn.calls
        return True

    @property
    def changed(self) -> Iterable[Turn]:
        return (turn for turn in self.turns.values() if turn.is_changed)

    @property
    def new_marks(self) -> list[Item]:
        """The marks of changed turns that the store did not have."""
        return [
            at(
                keys.pending(self.experiment_id, *turn.key),
                {"run": turn.key.run_id, "turn": turn.key.turn},
            )
            for turn in self.changed
            if not turn.version
        ]

    @property
    def touches_account(self) -> bool:
        return self._has_new_lease or any((self._committed, self._calls, self._turns))

    def write_to(self, transaction: Transaction) -> None:
        """Add the changed turns and the account."""
        for turn in self.changed:
            transaction.put_version(turn.item(), turn.version)
        if self.touches_account:
            self._write_account(transaction)

    def _write_account(self, transaction: Transaction) -> None:
        account = self.account
        conditions = [
            "attribute_not_exists(#state)" if account.state is None else "#state = :state"
        ]
        values: dict[str, Value] = {"calls": self._calls, "turns": self._turns}
        updates = ["#calls :calls", "#turns :turns"]
        if account.state is not None:
            values |= {"state": str(account.state), "committed": self._committed}
            updates.append("#committed :committed")
        if self._reserved and account.budget is not None:
            values |= {"budget": account.budget, "room": account.budget - self._committed}
            conditions.append("#budget = :budget AND #committed <= :room")
        elif self._reserved:
            conditions.append("attribute_not_exists(#budget)")
        transaction.update(
            keys.account(self.experiment_id),
            f"ADD {', '.join(updates)}",
            " AND ".join(conditions),
            values,
        )
