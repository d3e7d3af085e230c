"""The turns and the account of an experiment: read, changed by one call, and written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from socratic_bench.adapters.stores.dynamodb import keys
from socratic_bench.adapters.stores.dynamodb.items import (
    Item,
    ItemKey,
    Value,
    WriteTransaction,
    at,
    key_of,
)
from socratic_bench.adapters.stores.dynamodb.table import DynamoTable
from socratic_bench.adapters.stores.dynamodb.turns import StoredTurn, turn_of_item
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.domain.leasing import Account
from socratic_bench.ports.stores.leases import LeaseKey
from socratic_bench.ports.stores.responses import TurnKey


@dataclass(slots=True)
class StoredAccount(Account):
    """The account of an experiment. Every claim of a lease and every settled cost changes it."""

    state: ExperimentState | None = None
    """None: the experiment is not registered, and no money is counted."""

    profile: str | None = None
    calls: int = 0
    turns: int = 0
    """Turns with at least one call."""

    @property
    def is_registered(self) -> bool:
        return self.state is not None

    @property
    def is_deleted(self) -> bool:
        return self.state is ExperimentState.DELETED

    @property
    def may_call(self) -> bool:
        return self.state is None or self.state.calls_may_begin


def account_of_item(item: Item | None) -> StoredAccount:
    if item is None:
        return StoredAccount()
    state, profile, budget = item.get("state"), item.get("profile"), item.get("budget")
    return StoredAccount(
        state=None if state is None else ExperimentState(str(state)),
        profile=None if profile is None else str(profile),
        budget=None if budget is None else int(budget),
        committed=int(item.get("committed", 0)),
        exhausted=bool(item.get("exhausted", False)),
        calls=int(item.get("calls", 0)),
        turns=int(item.get("turns", 0)),
        paid=int(item.get("paid", 0)),
        reused=int(item.get("reused", 0)),
    )


class Books:
    """Changes turns in memory, and writes all changes in one transaction."""

    def __init__(
        self, experiment_id: str, account: StoredAccount, turns: Mapping[TurnKey, StoredTurn]
    ) -> None:
        self.experiment_id = experiment_id
        self.account = account
        self.turns = turns
        self._before = _money(account)
        self._calls = 0
        self._turns = 0
        self._reserved = 0
        """The money reserved by new leases."""

        self._has_new_lease = False

    def commit(self, nanodollars: int) -> None:
        """Add to the committed money; the store keeps it if the experiment is registered.

        Raises StoreRefused for a number that is too large.
        """
        self.account.commit(nanodollars, self.experiment_id)

    @property
    def _growth(self) -> dict[str, int]:
        """The growth of the money; an experiment adopts responses before it is registered."""
        kept = _money(self.account)
        names = kept if self.account.is_registered else ("reused",)
        return {name: kept[name] - self._before[name] for name in names}

    def lease(
        self, turn: StoredTurn, lease: LeaseKey, owner: str, until: int, reserve: int
    ) -> None:
        """Begin a lease, count its call and commit its reservation."""
        self.commit(reserve)
        self._turns += not turn.calls.calls
        self._calls += 1
        self._reserved += reserve
        self._has_new_lease = True
        turn.calls.lease(lease.lease_id, owner, until, reserve)
        turn.is_changed = True

    def settle(self, lease: LeaseKey, cost: int | None, *, begun: bool = True) -> bool:
        """End a lease; returns whether it was open.

        `cost` replaces the reservation; None: the reservation stays committed. A call that did not
        begin does not count. Raises StoreRefused as `commit` does.
        """
        turn = self.turns[TurnKey(lease.run_id, lease.turn)]
        if (reserved := turn.calls.reserved_under(lease.lease_id)) is None:
            return False
        if cost is not None:
            self.account.pay(cost, self.experiment_id, reserved=reserved)
        turn.calls.end(lease.lease_id, begun=begun)
        turn.is_changed = True
        if not begun:
            self._calls -= 1
            self._turns -= not turn.calls.calls
        return True

    @property
    def changed(self) -> Iterable[StoredTurn]:
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
        return self._has_new_lease or any((*self._growth.values(), self._calls, self._turns))

    def write_to(self, transaction: WriteTransaction) -> None:
        """Add the changed turns and the account."""
        for turn in self.changed:
            transaction.put_version(turn.item(), turn.version)
        if self.touches_account:
            self._write_account(transaction)

    def _write_account(self, transaction: WriteTransaction) -> None:
        account = self.account
        conditions = [
            "attribute_not_exists(#state)" if account.state is None else "#state = :state"
        ]
        values: dict[str, Value] = {"calls": self._calls, "turns": self._turns}
        updates = ["#calls :calls", "#turns :turns"]
        if account.state is not None:
            values["state"] = str(account.state)
        values |= self._growth
        updates += [f"#{name} :{name}" for name in self._growth]
        if self._reserved and account.budget is not None:
            values |= {
                "budget": account.budget,
                "room": account.budget - self._growth.get("committed", 0),
            }
            conditions.append("#budget = :budget AND #committed <= :room")
        elif self._reserved:
            conditions.append("attribute_not_exists(#budget)")
        transaction.update(
            keys.account(self.experiment_id),
            f"ADD {', '.join(updates)}",
            " AND ".join(conditions),
            values,
        )


def _money(account: Account) -> dict[str, int]:
    return {"committed": account.committed, "paid": account.paid, "reused": account.reused}


TURNS_AT_ONCE: Final = 48
"""The most turns of one transaction; for each, a lease may look at an owner besides."""

Decision = TypeVar("Decision")


async def read_books(
    table: DynamoTable, experiment_id: str, turns: Collection[TurnKey]
) -> tuple[Books, Mapping[ItemKey, Item]]:
    """Read turns and their account, and return the items, too."""
    account = keys.account(experiment_id)
    found = await table.get([account, *(keys.turn(*turn) for turn in turns)])
    books = Books(
        experiment_id,
        account_of_item(found.get(account)),
        {turn: _turn(experiment_id, turn, found) for turn in turns},
    )
    return books, found


async def change(
    table: DynamoTable,
    experiment_id: str,
    turns: Collection[TurnKey],
    decide: Callable[[Books], Decision],
) -> Decision:
    """Let `decide` change the books, and write them; it decides again if others were quicker.

    `decide` must not keep what it changed before.
    """
    backoff = table.backoff()
    while True:
        books, _ = await read_books(table, experiment_id, turns)
        decision = decide(books)
        if await written(table, books):
            return decision
        await backoff.pause()


async def written(
    table: DynamoTable, books: Books, check: Callable[[WriteTransaction], None] | None = None
) -> bool:
    """Write changed books, unless others have changed any of it since it was read.

    `check` adds what else has to be as it was. The marks of new turns are written first and alone,
    for half the price: readers pass over a mark without a turn, and a turn is never without a mark.
    """
    transaction = table.transaction()
    books.write_to(transaction)
    if not len(transaction):
        return True
    if check is not None:
        check(transaction)
    marks = books.new_marks
    await table.write(marks)
    if not await table.commit(transaction):
        return True
    if marks and (await account_of(table, books.experiment_id)).is_deleted:
        await table.write([], map(key_of, marks))  # nobody looks for them again
    return False


async def account_of(table: DynamoTable, experiment_id: str) -> StoredAccount:
    key = keys.account(experiment_id)
    return account_of_item((await table.get([key])).get(key))


def _turn(experiment_id: str, key: TurnKey, found: Mapping[ItemKey, Item]) -> StoredTurn:
    """Return a turn of this experiment; an empty one for a run of another experiment."""
    item = found.get(keys.turn(*key))
    if item is None or item["experiment"] != experiment_id:
        return StoredTurn(experiment_id, key)
    return turn_of_item(key, item)
