"""The money that experiments spent and reserved, inside one transaction.

The row of an experiment in `spending` is the lock on its budget. A transaction that reserves or
settles locks it first, then responses, then calls, so that no two transactions deadlock, and a
budget does not change between its check and its use.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from socratic_bench.adapters.stores.sql.batches import chunks
from socratic_bench.adapters.stores.sql.leases.statements import ADD_COMMITTED, LeaseStatements
from socratic_bench.adapters.stores.sql.transactions import Transaction
from socratic_bench.errors import StoreRefused
from socratic_bench.ports.stores.leases import LeaseKey

MOST_NANODOLLARS = 2**63 - 1
"""The largest value of a 64-bit column. SQLite would continue with a float."""


class CallKey(NamedTuple):
    """The key of the calls for a turn."""

    experiment_id: str
    run_id: str
    turn: int


class Ending(NamedTuple):
    """The end of a lease."""

    cost: int | None
    """The amount that replaces the reservation; None: the reservation stays committed."""

    begun: bool = True
    """Whether its call began, and so counts."""


@dataclass(slots=True)
class Call:
    """A row of `calls`."""

    experiment_id: str
    run_id: str
    turn: int
    calls: int
    owner: str
    leased_until: int
    reserved: int
    lease_id: str
    lapsed: str | None

    def end(self, lease_id: str) -> int | None:
        """End a lease of this turn. Returns its reservation; None for an ended lease."""
        if not lease_id:
            return None
        if lease_id == self.lease_id:
            reserved = self.reserved
            self.lease_id, self.leased_until, self.reserved = "", 0, 0
            return reserved
        lapsed: dict[str, int] = json.loads(self.lapsed or "{}")
        ended = lapsed.pop(lease_id, None)
        if ended is not None:
            self.lapsed = json.dumps(lapsed) if lapsed else None
        return ended

    def row(self) -> Mapping[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


class Ledger:
    """The committed money, for one writing transaction."""

    def __init__(self, transaction: Transaction, statements: LeaseStatements) -> None:
        self._transaction = transaction
        self._statements = statements
        self._committed: dict[str, int] = {}
        self._more: Counter[str] = Counter()

    async def lock(self, experiment_ids: Collection[str]) -> dict[str, int | None]:
        """Lock the budgets of these experiments; returns the rest of each.

        The rest is None without a budget, and negative after the budget was lowered.
        """
        left: dict[str, int | None] = {}
        for chunk in chunks(sorted(experiment_ids)):
            rows = await self._transaction.execute(
                self._statements.take_spending, {"experiment_ids": chunk}
            )
            for experiment_id, budget, committed in rows:
                self._committed[experiment_id] = committed
                left[experiment_id] = None if budget is None else budget - committed
        return left

    def add(self, experiment_id: str, nanodollars: int) -> None:
        """Add to the committed money of a locked experiment."""
        self._more[experiment_id] += nanodollars

    async def settle(self, endings: Mapping[LeaseKey, Ending]) -> set[LeaseKey]:
        """End these leases; returns those that were open.

        The caller has locked the experiments of leases whose cost differs from their reservation.
        """
        settled: set[LeaseKey] = set()
        changed: dict[CallKey, Call] = {}
        calls = await self._take_calls({call_of(lease) for lease in endings})
        for lease, (cost, begun) in endings.items():
            call = calls.get(call_of(lease))
            if call is None or (reserved := call.end(lease.lease_id)) is None:
                continue
            settled.add(lease)
            changed[call_of(lease)] = call
            call.calls -= not begun
            if cost is not None:
                self.add(lease.experiment_id, cost - reserved)
        if changed:
            rows = [changed[key].row() for key in sorted(changed)]
            await self._transaction.execute(
                self._statements.write_calls, self._statements.rows(rows)
            )
        return settled

    async def know(self, keys: Collection[CallKey]) -> None:
        """Make missing rows for these turns, which were answered without a lease."""
        if keys:
            rows = [Call(*key, 0, "", 0, 0, "", None).row() for key in sorted(keys)]
            await self._transaction.execute(
                self._statements.make_calls, self._statements.rows(rows)
            )

    async def write(self) -> None:
        """Write the changes of committed money."""
        for experiment_id, nanodollars in sorted(self._more.items()):
            if self._committed.get(experiment_id, 0) + nanodollars > MOST_NANODOLLARS:
                raise StoreRefused(
                    f"experiment {experiment_id} would cost more than a store can count"
                )
            if nanodollars:
                parameters = {"at_experiment_id": experiment_id, "more": nanodollars}
                await self._transaction.execute(ADD_COMMITTED, parameters)

    async def _take_calls(self, keys: Collection[CallKey]) -> dict[CallKey, Call]:
        calls: dict[CallKey, Call] = {}
        for chunk in chunks(sorted(keys)):
            parameters = self._statements.keys_of_calls(chunk)
            for row in await self._transaction.execute(self._statements.take_calls, parameters):
                call = Call(*row)
                calls[CallKey(call.experiment_id, call.run_id, call.turn)] = call
        return calls


def call_of(lease: LeaseKey) -> CallKey:
    """Return the turn of a lease."""
    return CallKey(lease.experiment_id, lease.run_id, lease.turn)
