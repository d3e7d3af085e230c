"""Storing responses and settling the leases of their calls, inside one transaction."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from socratic_bench.adapters.sql.batches import chunks
from socratic_bench.adapters.sql.experiments.holding import deleted_among
from socratic_bench.adapters.sql.leases.ledger import Ending, Ledger, call_of
from socratic_bench.adapters.sql.responses.rows import RESPONSES, row_of_response
from socratic_bench.adapters.sql.responses.statements import ResponseStatements
from socratic_bench.adapters.sql.statements import Statements
from socratic_bench.adapters.sql.transactions import Transaction
from socratic_bench.domain.response import Response
from socratic_bench.ports.stores.leases import LeaseKey
from socratic_bench.ports.stores.responses import TurnKey


class Recording:
    """The responses of one call of `Responses.record`, for one transaction that writes."""

    def __init__(self, transaction: Transaction, statements: Statements) -> None:
        self._transaction = transaction
        self._statements = statements
        self._ledger = Ledger(transaction, statements.leases)

    async def record(
        self, responses: Sequence[Response], lease_ids: Sequence[str | None]
    ) -> list[Response]:
        """What `Responses.record` says."""
        ids = {response.run.experiment_id for response in responses}
        deleted = await deleted_among(self._transaction, self._statements.experiments, ids)
        stored: dict[TurnKey, Response] = {}
        leases: dict[TurnKey, LeaseKey] = {}
        """The lease of each turn, but where nothing was reserved and nothing is charged: of an
        answered turn nobody asks whether its lease is over."""
        endings: dict[LeaseKey, Ending] = {}
        for response, lease_id in zip(responses, lease_ids, strict=True):
            if response.run.experiment_id in deleted:
                continue
            turn, charged = _turn_of(response), response.charged_nanodollars
            is_first = stored.setdefault(turn, response) is response
            if lease_id is not None or charged is not None:
                lease = LeaseKey(response.run.experiment_id, *turn, lease_id or "")
                endings.setdefault(lease, Ending(charged))
                if is_first:
                    leases[turn] = lease
        if not stored:
            return list(responses)
        await self._ledger.lock(
            {lease.experiment_id for lease, end in endings.items() if end.cost is not None}
        )
        inserted = await self._insert(stored)
        if endings:
            settled = await self._ledger.settle(endings)
            await self._add_unreserved(
                {
                    lease: stored[turn]
                    for turn, lease in leases.items()
                    if turn in inserted and lease not in settled
                }
            )
            await self._ledger.write()
        if len(inserted) == len(responses):
            return list(responses)
        earlier = stored.keys() - inserted
        for row in await rows_of_responses(
            self._transaction, self._statements.responses, {run_id for run_id, _ in earlier}
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
        inserted = await self._transaction.insert(self._statements.responses.insert_responses, rows)
        return {TurnKey._make(row) for row in inserted}


async def rows_of_responses(
    transaction: Transaction, statements: ResponseStatements, run_ids: Collection[str]
) -> list[Sequence[Any]]:
    """The responses of these runs as RESPONSES reads them, each run's in the order of its turns."""
    found: list[Sequence[Any]] = []
    for chunk in chunks(run_ids):
        found += await transaction.execute(statements.responses, {"run_ids": chunk})
    return found


def _turn_of(response: Response) -> TurnKey:
    return TurnKey(response.run.run_id, response.turn)
