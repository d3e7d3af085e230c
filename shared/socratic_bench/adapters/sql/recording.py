"""Storing responses and settling the leases of their calls, inside one transaction."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from socratic_bench.adapters.sql.batched import Lookups, Writes, chunks
from socratic_bench.adapters.sql.lease_statements import LeaseStatements
from socratic_bench.adapters.sql.ledger import Ending, Ledger, call_of
from socratic_bench.adapters.sql.records import RESPONSES, row_of_response
from socratic_bench.adapters.sql.stopping import deleted_among
from socratic_bench.adapters.sql.transactions import Transaction
from socratic_bench.domain.response import Response
from socratic_bench.ports.leases import LeaseKey
from socratic_bench.ports.store import TurnKey


class Recording:
    """The responses of one call of `Store.record`, for one transaction that writes."""

    def __init__(
        self,
        transaction: Transaction,
        lookups: Lookups,
        writes: Writes,
        statements: LeaseStatements,
    ) -> None:
        self._transaction = transaction
        self._lookups = lookups
        self._writes = writes
        self._ledger = Ledger(transaction, statements)

    async def record(
        self, responses: Sequence[Response], lease_ids: Sequence[str | None]
    ) -> list[Response]:
        """What `Store.record` says."""
        ids = {response.run.experiment_id for response in responses}
        deleted = await deleted_among(self._transaction, self._lookups, ids)
        firsts: dict[TurnKey, tuple[LeaseKey, Response]] = {}
        endings: dict[LeaseKey, Ending] = {}
        free: set[LeaseKey] = set()
        for response, lease_id in zip(responses, lease_ids, strict=True):
            if response.run.experiment_id in deleted:
                continue
            lease = _lease_of(response, lease_id or "")
            firsts.setdefault(_turn_of(response), (lease, response))
            if lease_id is None and response.charged_nanodollars is None:
                # Of an answered turn nobody asks whether its lease is over.
                free.add(lease)
            else:
                endings.setdefault(lease, Ending(response.charged_nanodollars))
        if not firsts:
            return list(responses)
        await self._ledger.lock(
            {lease.experiment_id for lease, end in endings.items() if end.cost is not None}
        )
        stored = {turn: response for turn, (_, response) in firsts.items()}
        inserted = await self._insert(stored)
        settled = await self._ledger.settle(endings) if endings else set()
        await self._add_unreserved(
            {
                lease: response
                for lease, response in map(firsts.__getitem__, inserted)
                if lease not in settled and lease not in free
            }
        )
        await self._ledger.write()
        earlier = stored.keys() - inserted
        for row in await rows_of_responses(
            self._transaction, self._lookups, {run_id for run_id, _ in earlier}
        ):
            turn = TurnKey._make(row[:2])
            if turn in earlier:
                stored[turn] = RESPONSES.fact(row)
        return [stored.get(_turn_of(response), response) for response in responses]

    async def _add_unreserved(self, responses: Mapping[LeaseKey, Response]) -> None:
        """Add what these responses cost, for which nothing was reserved, or not any more."""
        await self._ledger.know({call_of(lease) for lease in responses})
        for lease, response in responses.items():
            self._ledger.add(lease.experiment_id, response.charged_nanodollars or 0)

    async def _insert(self, responses: Mapping[TurnKey, Response]) -> set[TurnKey]:
        """Store these responses where their turns have none; returns those turns."""
        rows = [row_of_response(responses[turn]) for turn in sorted(responses)]
        inserted = await self._transaction.execute(
            self._writes.insert_responses, self._writes.rows(rows)
        )
        return {TurnKey._make(row) for row in inserted}


async def rows_of_responses(
    transaction: Transaction, lookups: Lookups, run_ids: Collection[str]
) -> list[Sequence[Any]]:
    """The responses of these runs as RESPONSES reads them, each run's in the order of its turns."""
    found: list[Sequence[Any]] = []
    for chunk in chunks(run_ids):
        found += await transaction.execute(lookups.responses, {"run_ids": chunk})
    return found


def _turn_of(response: Response) -> TurnKey:
    return TurnKey(response.run.run_id, response.turn)


def _lease_of(response: Response, lease_id: str) -> LeaseKey:
    return LeaseKey(response.run.experiment_id, *_turn_of(response), lease_id)
