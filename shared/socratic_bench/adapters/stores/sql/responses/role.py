"""The role `Responses` of the SQL store."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from socratic_bench.adapters.stores.conversations import (
    KnownConversations,
    ResponseReader,
    turn_of,
)
from socratic_bench.adapters.stores.sql.batches import chunks
from socratic_bench.adapters.stores.sql.clock import Now
from socratic_bench.adapters.stores.sql.database import Database
from socratic_bench.adapters.stores.sql.experiments.holding import deleted_among
from socratic_bench.adapters.stores.sql.responses.recording import Recording, rows_of_responses
from socratic_bench.adapters.stores.sql.responses.rows import (
    FAILED_RUNS,
    UNFOLDED,
    records_of_responses,
    row_of_failed_run,
)
from socratic_bench.adapters.stores.sql.responses.statements import (
    UNFOLDED_FAILURES,
    UNSCORED_RESPONSES,
)
from socratic_bench.adapters.stores.sql.role import SqlRole
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import RunFailure
from socratic_bench.ports.stores.responses import RecordedFailure, TurnKey


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
        latest: dict[str, RecordedFailure] = {}
        for failed in failures:
            known = latest.setdefault(failed.failure.run.run_id, failed)
            if known.retry < failed.retry:
                latest[failed.failure.run.run_id] = failed
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
            recorded.extend(FAILED_RUNS.facts(rows))
        return {each.failure.run.run_id: each for each in recorded}

    async def unfolded_failures(self, experiment_id: str, limit: int) -> Sequence[RunFailure]:
        parameters = {"experiment_id": experiment_id}
        async with self._database.read() as transaction:
            rows = await transaction.execute(UNFOLDED_FAILURES, parameters)
        unfolded = [
            failure
            for failure, folded in UNFOLDED.facts(rows)
            if folded is None or folded.turn < failure.turn
        ]
        return unfolded[:limit]
