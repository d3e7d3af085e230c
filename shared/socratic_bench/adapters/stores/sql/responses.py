"""The role `Responses` of the SQL store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from socratic_bench.adapters.stores.conversations import (
    KnownConversations,
    ResponseReader,
    turn_of,
)
from socratic_bench.adapters.stores.sql.database import Database
from socratic_bench.adapters.stores.sql.dialect import chunks
from socratic_bench.adapters.stores.sql.experiment_statements import deleted_among
from socratic_bench.adapters.stores.sql.ledger import Ending, Ledger, call_of
from socratic_bench.adapters.stores.sql.response_statements import (
    FAILED_RUN_RECORDS,
    UNFOLDED,
    UNFOLDED_FAILURES,
    UNSCORED_RESPONSES,
    ResponseStatements,
    records_of_responses,
    row_of_failed_run,
    row_of_response,
)
from socratic_bench.adapters.stores.sql.role import Now, SqlRole, Statements
from socratic_bench.adapters.stores.sql.transactions import Execute, Transaction
from socratic_bench.domain.aggregates.cell import outranks
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import RunFailure
from socratic_bench.ports.stores.leases import LeaseKey
from socratic_bench.ports.stores.responses import RecordedFailure, TurnKey, latest_of_runs


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
        await self._ledger.open(
            {each.run.experiment_id for each in stored.values() if each.reused_nanodollars}
        )
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
            self._ledger.pay(
                lease.experiment_id,
                response.charged_nanodollars or 0,
                reused=response.reused_nanodollars,
            )

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


class SqlResponses(SqlRole):
    """Records responses and failures, and finds unfolded ones."""

    def __init__(self, database: Database, now: Now | None = None) -> None:
        super().__init__(database, now)
        self._known = KnownConversations()
        self._known_since = 0

    async def record(
        self, responses: Sequence[Response], lease_ids: Sequence[str | None]
    ) -> Sequence[Response]:
        if not responses:
            return []
        async with self._database.write() as transaction:
            recording = Recording(transaction, self._statements, self._known_rows)
            stored = await recording.record(responses, lease_ids)
        recording.known.add_beneath()
        return stored

    def _known_rows(self) -> KnownConversations:
        """Return the digests of rows of the server that all connections for writing reach.

        After a fail-over or a crash the server may lack rows whose commits it had confirmed. Every
        writer then connects again, so this forgets the rows that earlier connections knew.
        """
        if self._known_since != self._database.writing_connects:
            self._known_since = self._database.writing_connects
            self._known = KnownConversations()
        return self._known

    async def responses(self, run_ids: Collection[str]) -> Mapping[str, Sequence[Response]]:
        known = self._known_rows()
        statements = self._statements.responses
        rows = await rows_of_responses(self._database.look_up, statements, run_ids)
        of_runs: dict[str, list[Response]] = {}
        reader = ResponseReader()
        for response in records_of_responses(reader).facts(rows):
            of_runs.setdefault(response.run.run_id, []).append(response)
        known.add(reader.digests)
        return of_runs

    async def unscored_responses(self, experiment_id: str, limit: int) -> Sequence[Response]:
        parameters = {"experiment_id": experiment_id, "limit": limit}
        async with self._database.read() as transaction:
            found = await transaction.execute(UNSCORED_RESPONSES, parameters)
            unscored = {TurnKey._make(row[:2]) for row in found}
            later = {run_id for run_id, turn in unscored if turn > 1}
            rows = [
                *(row for row in found if row.run_id not in later),
                *await rows_of_responses(transaction.execute, self._statements.responses, later),
            ]
        responses = records_of_responses(ResponseReader()).facts(rows)
        return [response for response in responses if turn_of(response) in unscored]

    async def record_failures(self, failures: Sequence[RecordedFailure]) -> None:
        latest = latest_of_runs(failures)
        if not latest:
            return
        ids = {failed.failure.run.experiment_id for failed in latest.values()}
        async with self._database.write() as transaction:
            deleted = await deleted_among(transaction, self._statements.experiments, ids)
            rows = [
                row_of_failed_run(latest[run_id])
                for run_id in sorted(latest)
                if latest[run_id].failure.run.experiment_id not in deleted
            ]
            if rows:
                await transaction.execute(
                    self._statements.responses.write_failed_runs,
                    self._statements.responses.rows(rows),
                )

    async def recorded_failures(self, run_ids: Collection[str]) -> Mapping[str, RecordedFailure]:
        recorded: list[RecordedFailure] = []
        for chunk in chunks(run_ids):
            rows = await self._database.look_up(
                self._statements.responses.failed_runs, {"run_ids": chunk}
            )
            recorded.extend(FAILED_RUN_RECORDS.facts(rows))
        return {each.failure.run.run_id: each for each in recorded}

    async def unfolded_failures(self, experiment_id: str, limit: int) -> Sequence[RunFailure]:
        parameters = {"experiment_id": experiment_id}
        async with self._database.read() as transaction:
            rows = await transaction.execute(UNFOLDED_FAILURES, parameters)
        unfolded = [
            failure for failure, folded in UNFOLDED.facts(rows) if outranks(failure, folded)
        ]
        return unfolded[:limit]
