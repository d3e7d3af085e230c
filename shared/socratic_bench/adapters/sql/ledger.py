"""What the calls of experiments cost and may cost, inside one transaction.

The row of an experiment in `spending` is the lock on its budget. Whoever reserves or settles takes
it first, then responses, then calls: no two transactions wait for each other crosswise, and what
was read of a budget stays true until it is used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from socratic_bench.adapters.sql.batched import Lookups, chunks
from socratic_bench.adapters.sql.statements import ADD_COMMITTED
from socratic_bench.adapters.sql.transactions import Transaction
from socratic_bench.domain.response import Response


class CallKey(NamedTuple):
    """What the calls for a turn are stored by."""

    experiment_id: str
    run_id: str
    turn: int


class Reservation(NamedTuple):
    """What is reserved for the latest call for a turn."""

    owner: str
    nanodollars: int


class Ledger:
    """What is committed, for one transaction that writes."""

    def __init__(self, transaction: Transaction, lookups: Lookups) -> None:
        self._transaction = transaction
        self._lookups = lookups

    async def lock(self, experiment_ids: Collection[str]) -> dict[str, int | None]:
        """Take these experiments; returns what is left of the budget of those that have one.

        That is None where there is no budget, and less than nothing where it was lowered.
        """
        left: dict[str, int | None] = {}
        for chunk in chunks(sorted(experiment_ids)):
            rows = await self._transaction.execute(
                self._lookups.take_spending, {"experiment_ids": chunk}
            )
            for experiment_id, budget, committed in rows:
                left[experiment_id] = None if budget is None else budget - committed
        return left

    async def add(self, experiment_id: str, nanodollars: int) -> None:
        """Have that much more, or less, committed of an experiment that is locked."""
        if nanodollars:
            parameters = {"at_experiment_id": experiment_id, "more": nanodollars}
            await self._transaction.execute(ADD_COMMITTED, parameters)

    async def reservations(self, calls: Iterable[CallKey]) -> dict[CallKey, Reservation]:
        """What is reserved for these calls, where anything is; locks them."""
        found: dict[CallKey, Reservation] = {}
        for chunk in chunks(sorted(calls)):
            parameters = self._lookups.keys_of_calls(chunk)
            for *key, owner, reserved in await self._transaction.execute(
                self._lookups.take_reservations, parameters
            ):
                if reserved:
                    found[CallKey._make(key)] = Reservation(owner, reserved)
        return found

    async def end(self, calls: Iterable[CallKey]) -> None:
        """Have nothing reserved for these calls; what is committed stays as it is."""
        for chunk in chunks(sorted(calls)):
            parameters = self._lookups.keys_of_calls(chunk)
            await self._transaction.execute(self._lookups.end_reservations, parameters)

    async def settle(self, costs: Mapping[CallKey, int]) -> None:
        """Have committed what these calls cost instead of what was reserved for them."""
        reserved = await self.reservations(costs)
        await self.end(reserved)
        more: Counter[str] = Counter()
        for call, cost in costs.items():
            more[call.experiment_id] += cost
        for call, reservation in reserved.items():
            more[call.experiment_id] -= reservation.nanodollars
        for experiment_id, nanodollars in more.items():
            await self.add(experiment_id, nanodollars)


def costs_of(responses: Iterable[Response]) -> dict[CallKey, int]:
    """What the calls for these responses cost, where that is known."""
    return {
        CallKey(response.run.experiment_id, response.run.run_id, response.turn): cost
        for response in responses
        if (cost := response.cost_nanodollars) is not None
    }
