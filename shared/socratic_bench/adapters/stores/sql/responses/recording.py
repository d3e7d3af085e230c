"""The storage of responses and the settlement of their leases, inside one transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from socratic_bench.adapters.stores.conversations import (
    KnownConversations,
    ResponseReader,
    turn_of,
)
from socratic_bench.adapters.stores.sql.batches import chunks
from socratic_bench.adapters.stores.sql.experiments.holding import deleted_among
from socratic_bench.adapters.stores.sql.leases.ledger import Ending, Ledger, call_of
from socratic_bench.adapters.stores.sql.responses.rows import records_of_responses, row_of_response
from socratic_bench.adapters.stores.sql.responses.statements import ResponseStatements
from socratic_bench.adapters.stores.sql.statements import Statements
from socratic_bench.adapters.stores.sql.transactions import Execute, Transaction
from socratic_bench.domain.response import Response
from socratic_bench.ports.stores.leases import LeaseKey
from socratic_bench.ports.stores.responses import TurnKey


class Recording:
    """The responses of one call of `Responses.record`, for one writing transaction."""

    def __init__(
        self,
        transaction: Transaction,
        statements: Statements,
        known_rows: Callable[[], KnownConversations],
    ) -> None:
        self._transaction = transaction
        self._statements = statements
        self._known_rows = known_rows
        self.known = KnownConversations()
        """The conversations that the transaction adds to."""
        self._ledger = Ledger(transaction, statements.leases)

    async def record(
        self, responses: Sequence[Response], lease_ids: Sequence[str | None]
    ) -> list[Response]:
        """Do the work of `Responses.record`."""
        ids = {response.run.experiment_id for response in responses}
        deleted = await deleted_among(self._transaction, self._statements.experiments, ids)
        # After the first statement, which may connect.
        self.known = KnownConversations(beneath=self._known_rows())
        stored: dict[TurnKey, Response] = {}
        leases: dict[TurnKey, LeaseKey] = {}
        """The lease of each turn, except leases without reservation and charge: the store never
        asks whether the lease of an answered turn is over."""
        endings: dict[LeaseKey, Ending] = {}
        for response, lease_id in zip(responses, lease_ids, strict=True):
            if response.run.experiment_id in deleted:
                continue
            turn, charged = turn_of(response), response.charged_nanodollars
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
        stored |= await self._stored(stored.keys() - inserted)
        return [stored.get(turn_of(response), response) for response in responses]

    async def _add_unreserved(self, responses: Mapping[LeaseKey, Response]) -> None:
        """Add the costs of responses without an open reservation."""
        await self._ledger.know({call_of(lease) for lease in responses})
        for lease, response in responses.items():
            self._ledger.add(lease.experiment_id, response.charged_nanodollars or 0)

    async def _insert(self, responses: Mapping[TurnKey, Response]) -> set[TurnKey]:
        """Store the responses of turns without one; returns those turns."""
        inserted: set[TurnKey] = set()
        for turns in _in_order(responses):
            rows = [row_of_response(responses[turn], self.known) for turn in turns]
            keys = await self._transaction.insert(self._statements.responses.insert_responses, rows)
            for turn in map(TurnKey._make, keys):
                inserted.add(turn)
                self.known.note(turn)
        return inserted

    async def _stored(self, turns: Collection[TurnKey]) -> dict[TurnKey, Response]:
        """Return the earlier responses of these turns, without the unreadable ones."""
        rows = await rows_of_responses(
            self._transaction.execute, self._statements.responses, {run_id for run_id, _ in turns}
        )
        reader = ResponseReader()
        responses = records_of_responses(reader).facts(rows)
        self.known.add(reader.digests)
        stored = {turn_of(response): response for response in responses}
        return {turn: stored[turn] for turn in turns if turn in stored}


def _in_order(turns: Collection[TurnKey]) -> Iterable[list[TurnKey]]:
    """The turns as they are inserted, the first turns first.

    Those of a run one after the other: the row of a turn counts on the rows before it.
    """
    ordered = sorted(turns, key=lambda turn: (turn.turn, turn.run_id))
    if len({turn.run_id for turn in ordered}) == len(ordered):
        return [ordered]
    levels: defaultdict[int, list[TurnKey]] = defaultdict(list)
    for turn in ordered:
        levels[turn.turn].append(turn)
    return levels.values()


async def rows_of_responses(
    execute: Execute, statements: ResponseStatements, run_ids: Collection[str]
) -> list[Sequence[Any]]:
    """The rows of the responses of these runs, each run's in the order of its turns."""
    found: list[Sequence[Any]] = []
    for chunk in chunks(run_ids):
        found += await execute(statements.responses, {"run_ids": chunk})
    return found
