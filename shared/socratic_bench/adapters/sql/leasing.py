"""Taking turns for calls to models, within a budget, inside one transaction."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from socratic_bench.adapters.sql.batched import Lookups, Writes, chunks
from socratic_bench.adapters.sql.ledger import CallKey, Ledger
from socratic_bench.adapters.sql.records import microseconds
from socratic_bench.adapters.sql.transactions import Transaction
from socratic_bench.ports.store import Leases, TurnKey

Reserves = Mapping[TurnKey, int]
"""Turns, in the order in which they are to be served, and what a call for each may cost."""


class Leasing:
    """The leases of one experiment, for one transaction that writes."""

    def __init__(
        self, transaction: Transaction, lookups: Lookups, writes: Writes, experiment_id: str
    ) -> None:
        self._transaction = transaction
        self._lookups = lookups
        self._writes = writes
        self._experiment_id = experiment_id
        self._ledger = Ledger(transaction, lookups)

    async def lease(self, wanted: Reserves, owner: str, now: datetime, until: datetime) -> Leases:
        """What `Store.lease` says. Where nothing is reserved, nothing is asked about the budget."""
        while True:
            affordable, over_budget = wanted, frozenset[TurnKey]()
            if any(wanted.values()):
                affordable, over_budget = await self._within_budget(wanted, owner, now)
            granted = await self._take(affordable, owner, now, until)
            # Asked once they are taken: a response that is stored later came after the lease.
            answered = await self._answered(granted)
            if not answered:
                break
            await self._transaction.restart()
            wanted = {turn: wanted[turn] for turn in wanted if turn not in answered}
        await self._ledger.add(self._experiment_id, sum(wanted[turn] for turn in granted))
        return Leases(granted, over_budget)

    async def give_back(self, turns: Collection[TurnKey], owner: str) -> None:
        """What `Store.give_back` says."""
        held = set(turns) - await self._answered(set(turns))
        await self._end_reservations(held, owner, paid=False)
        for chunk in chunks(sorted(self._calls(held))):
            parameters = self._lookups.keys_of_calls(chunk, holder=owner)
            await self._transaction.execute(self._lookups.give_back_calls, parameters)

    async def release(self, turns: Collection[TurnKey], owner: str, *, paid: bool) -> None:
        """What `Store.release` says."""
        await self._end_reservations(turns, owner, paid=paid)

    async def _end_reservations(
        self, turns: Collection[TurnKey], owner: str, *, paid: bool
    ) -> None:
        await self._ledger.lock([self._experiment_id])
        reserved = {
            TurnKey(call.run_id, call.turn): reservation.nanodollars
            for call, reservation in (await self._ledger.reservations(self._calls(turns))).items()
            if reservation.owner == owner
        }
        for turn in await self._answered(reserved):
            del reserved[turn]  # paid for, as far as one knows
        await self._ledger.end(self._calls(reserved))
        if not paid:
            await self._ledger.add(self._experiment_id, -sum(reserved.values()))

    async def _within_budget(
        self, wanted: Reserves, owner: str, now: datetime
    ) -> tuple[Reserves, frozenset[TurnKey]]:
        """Lock the budget; returns what to try to take, and what only the budget forbids."""
        locked = await self._ledger.lock([self._experiment_id])
        left = locked.get(self._experiment_id)
        if left is None or sum(wanted.values()) <= left:
            return wanted, frozenset()
        priced = {turn for turn, reserve in wanted.items() if reserve}
        taken = await self._held_by_others(priced, owner, now) | await self._answered(priced)
        affordable, over_budget = {}, set()
        for turn, reserve in wanted.items():
            if not reserve or (turn not in taken and reserve <= left):
                affordable[turn] = reserve
                left -= reserve
            elif turn not in taken:
                over_budget.add(turn)
        return affordable, frozenset(over_budget)

    async def _take(
        self, wanted: Reserves, owner: str, now: datetime, until: datetime
    ) -> frozenset[TurnKey]:
        """Those of these turns that nobody else holds, held by `owner` from now on."""
        if not wanted:
            return frozenset()
        terms = {"calls": 1, "owner": owner, "leased_until": microseconds(until)}
        claims = [
            {
                "experiment_id": self._experiment_id,
                "run_id": run_id,
                "turn": turn,
                "reserved": reserve,
                **terms,
            }
            for (run_id, turn), reserve in sorted(wanted.items())
        ]
        parameters = self._writes.rows(claims, now=microseconds(now))
        rows = await self._transaction.execute(self._writes.lease, parameters)
        return frozenset(TurnKey._make(row) for row in rows)

    async def _held_by_others(
        self, turns: Collection[TurnKey], owner: str, now: datetime
    ) -> set[TurnKey]:
        held: set[TurnKey] = set()
        for chunk in chunks(self._calls(turns)):
            parameters = self._lookups.keys_of_calls(chunk, owner=owner, now=microseconds(now))
            rows = await self._transaction.execute(self._lookups.held_calls, parameters)
            held.update(TurnKey._make(row) for row in rows)
        return held

    async def _answered(self, turns: Collection[TurnKey]) -> set[TurnKey]:
        """Those of these turns whose response is stored."""
        answered: set[TurnKey] = set()
        for chunk in chunks({turn.run_id for turn in turns}):
            rows = await self._transaction.execute(self._lookups.response_keys, {"run_ids": chunk})
            answered.update(TurnKey._make(row) for row in rows)
        return answered.intersection(turns)

    def _calls(self, turns: Collection[TurnKey]) -> list[CallKey]:
        return [CallKey(self._experiment_id, *turn) for turn in turns]
