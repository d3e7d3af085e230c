"""The store in an SQL database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence

from socratic_bench.adapters.sql import statements
from socratic_bench.adapters.sql.backend import backend_for
from socratic_bench.adapters.sql.batched import chunks
from socratic_bench.adapters.sql.clock import Now
from socratic_bench.adapters.sql.database import Database
from socratic_bench.adapters.sql.experiment_store import SqlExperimentStore
from socratic_bench.adapters.sql.folding import Fold
from socratic_bench.adapters.sql.lease_store import SqlLeaseStore
from socratic_bench.adapters.sql.recording import Recording, rows_of_responses
from socratic_bench.adapters.sql.records import (
    CELLS,
    FAILED_RUNS,
    FAILURES,
    RESPONSES,
    SCORES,
    row_of_failed_run,
)
from socratic_bench.adapters.sql.state_store import SqlStateStore
from socratic_bench.adapters.sql.stopping import deleted_among
from socratic_bench.domain.cell import Cell
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import RunFailure
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.ports.store import CallCount, FailureCount, RecordedFailure


class SqlStore(SqlExperimentStore, SqlStateStore, SqlLeaseStore):
    """A Store in an SQL database; several processes may use the same one at once.

    Every method raises StoreUnavailable or StoreBroken where the database does not do its part,
    StoreRefused where it cannot hold what it is given, and StoreError once the store is closed.
    """

    @classmethod
    def from_url(cls, url: str, now: Now | None = None) -> SqlStore:
        """The store at `sqlite:///path` or `postgresql://…`. Opens nothing yet.

        With `now`, it judges time by that, and not by the clock of the database. Raises
        InvalidSettings where `url` is no such address.
        """
        return cls(Database(backend_for(url)), now)

    async def prepare(self) -> None:
        await self._database.prepare()

    async def responses(self, run_ids: Collection[str]) -> Mapping[str, Sequence[Response]]:
        """The stored responses of these runs; a run without any is not in the mapping."""
        async with self._database.read() as transaction:
            rows = await rows_of_responses(transaction, self._lookups, run_ids)
        of_runs: dict[str, list[Response]] = {}
        for response in RESPONSES.facts(rows):
            of_runs.setdefault(response.run.run_id, []).append(response)
        return of_runs

    async def record(
        self, responses: Sequence[Response], lease_ids: Sequence[str | None] = ()
    ) -> Sequence[Response]:
        if not responses:
            return []
        async with self._database.write() as transaction:
            recording = Recording(transaction, self._lookups, self._writes, self._leases)
            return await recording.record(responses, lease_ids or [""] * len(responses))

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
            deleted = await deleted_among(transaction, self._lookups, ids)
            rows = [
                row_of_failed_run(latest[run_id])
                for run_id in sorted(latest)
                if latest[run_id].failure.run.experiment_id not in deleted
            ]
            if rows:
                await transaction.execute(self._writes.write_failed_runs, self._writes.rows(rows))

    async def recorded_failures(self, run_ids: Collection[str]) -> Mapping[str, RecordedFailure]:
        recorded: list[RecordedFailure] = []
        async with self._database.read() as transaction:
            for chunk in chunks(run_ids):
                rows = await transaction.execute(self._lookups.failed_runs, {"run_ids": chunk})
                recorded.extend(FAILED_RUNS.facts(rows))
        return {each.failure.run.run_id: each for each in recorded}

    async def fold(
        self, scores: Sequence[ScoredResponse], failures: Sequence[RunFailure]
    ) -> Sequence[Cell]:
        """Store and fold; where a failure is taken back, its cell is returned as well.

        A cell that holds no fact that counts is no cell, and is not returned.
        """
        async with self._database.write() as transaction:
            return await Fold(transaction, self._lookups, self._writes).add(scores, failures)

    async def cells(self, experiment_ids: Collection[str] | None = None) -> Sequence[Cell]:
        async with self._database.read() as transaction:
            if experiment_ids is None:
                return CELLS.facts(await transaction.execute(statements.LIST_CELLS))
            cells: list[Cell] = []
            for chunk in chunks(sorted(set(experiment_ids))):
                rows = await transaction.execute(self._lookups.cells, {"experiment_ids": chunk})
                cells.extend(CELLS.facts(rows))
        return cells

    async def calls(self, experiment_id: str) -> CallCount:
        parameters = {"experiment_id": experiment_id}
        async with self._database.read() as transaction:
            rows = await transaction.execute(statements.CALLS_OF_EXPERIMENT, parameters)
        [(calls, turns)] = rows
        return CallCount(calls=int(calls), turns=turns)

    async def score_rows(self, experiment_id: str) -> AsyncIterator[Sequence[ScoredResponse]]:
        """In pages, each in a transaction of its own, so that a slow reader holds nothing up."""
        place = {"run_id": "", "turn": 0, "profile": ""}
        while True:
            async with self._database.read() as transaction:
                page = await transaction.execute(
                    statements.SCORE_PAGE, {"experiment_id": experiment_id, **place}
                )
            if not page:
                return
            yield SCORES.facts(page)
            last = page[-1]
            place = {"run_id": last.run_id, "turn": last.turn, "profile": last.profile}

    async def failure_rows(self, experiment_id: str) -> AsyncIterator[Sequence[RunFailure]]:
        """In pages, as `score_rows` has them."""
        place = {"run_id": "", "profile": ""}
        while True:
            async with self._database.read() as transaction:
                page = await transaction.execute(
                    statements.FAILURE_PAGE, {"experiment_id": experiment_id, **place}
                )
            if not page:
                return
            yield FAILURES.facts(page)
            place = {"run_id": page[-1].run_id, "profile": page[-1].profile}

    async def failed_runs(self, experiment_id: str, run_ids: Collection[str]) -> set[str]:
        failed: set[str] = set()
        async with self._database.read() as transaction:
            for chunk in chunks(run_ids):
                parameters = {"experiment_id": experiment_id, "run_ids": chunk}
                rows = await transaction.execute(self._lookups.failed_of_experiment, parameters)
                failed.update(run_id for (run_id,) in rows)
        return failed

    async def failure_kinds(self, experiment_id: str) -> Sequence[FailureCount]:
        of_experiment = {"experiment_id": experiment_id}
        last: dict[tuple[str, str], RunFailure] = {}
        async with self._database.read() as transaction:
            kinds = await transaction.execute(self._lookups.failure_kinds, of_experiment)
            for chunk in chunks(row[3] for row in kinds):
                parameters = {"experiment_ids": [experiment_id], "run_ids": chunk}
                rows = await transaction.execute(self._lookups.failures, parameters)
                last |= {(each.run.run_id, each.profile): each for each in FAILURES.facts(rows)}
        return [
            FailureCount(failure.run.model_id, failure.kind, runs, failure.message)
            for _, _, runs, run_id, profile in kinds
            if (failure := last.get((run_id, profile)))
        ]

    async def revision(self) -> str:
        async with self._database.read() as transaction:
            [(experiments, cells)] = await transaction.execute(statements.REVISION)
        return f"{experiments}-{cells}"

    async def close(self) -> None:
        await self._database.close()
