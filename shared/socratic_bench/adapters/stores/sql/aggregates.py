"""The role `Aggregates` of the SQL store."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Executable

from socratic_bench.adapters.stores.sql.aggregate_statements import (
    CELL_RECORDS,
    ENDED_RUNS,
    FAILURE_PAGE,
    FAILURE_RECORDS,
    LIST_CELLS,
    REVISION,
    REVISION_BEFORE_0008,
    SCORE_PAGE,
    SCORE_RECORDS,
)
from socratic_bench.adapters.stores.sql.dialect import chunks
from socratic_bench.adapters.stores.sql.folding import Folding
from socratic_bench.adapters.stores.sql.role import SqlRole
from socratic_bench.domain.aggregates.cell import Cell
from socratic_bench.domain.run import RunFailure
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.errors import StoreBroken
from socratic_bench.ports.stores.aggregates import FailureCount


class SqlAggregates(SqlRole):
    """Folds scores and failures into cells, and reads all three."""

    async def fold(
        self, scores: Sequence[ScoredResponse], failures: Sequence[RunFailure]
    ) -> Sequence[Cell]:
        async with self._database.write() as transaction:
            return await Folding(transaction, self._statements).add(scores, failures)

    async def cells(
        self,
        experiment_ids: Collection[str] | None = None,
        model_id: str | None = None,
        profile: str | None = None,
    ) -> Sequence[Cell]:
        of = self._statements.aggregates
        statement = of.cells if model_id is None else of.cells_of_model
        rows: list[Any] = []
        async with self._database.read() as transaction:
            if experiment_ids is None:
                every = await transaction.execute(LIST_CELLS)
                rows += [row for row in every if model_id in {None, row.model_id}]
            for chunk in chunks(sorted(set(experiment_ids or ()))):
                parameters = {"experiment_ids": chunk, "model_id": model_id}
                rows += await transaction.execute(statement, parameters)
        if profile is not None:
            rows = [row for row in rows if row.profile == profile]
        # In a thread: parsing many cells takes long.
        return await asyncio.to_thread(CELL_RECORDS.facts, rows)

    async def score_rows(self, experiment_id: str) -> AsyncIterator[Sequence[ScoredResponse]]:
        """Yield pages, each in its own transaction, so that a slow reader holds nothing up."""
        place = {"run_id": "", "turn": 0, "profile": ""}
        while True:
            async with self._database.read() as transaction:
                page = await transaction.execute(
                    SCORE_PAGE, {"experiment_id": experiment_id, **place}
                )
            if not page:
                return
            yield SCORE_RECORDS.facts(page)
            last = page[-1]
            place = {"run_id": last.run_id, "turn": last.turn, "profile": last.profile}

    async def failure_rows(self, experiment_id: str) -> AsyncIterator[Sequence[RunFailure]]:
        """Yield pages, as `score_rows` does."""
        place = {"run_id": "", "profile": ""}
        while True:
            async with self._database.read() as transaction:
                page = await transaction.execute(
                    FAILURE_PAGE, {"experiment_id": experiment_id, **place}
                )
            if not page:
                return
            yield FAILURE_RECORDS.facts(page)
            place = {"run_id": page[-1].run_id, "profile": page[-1].profile}

    async def scored_profiles(
        self, experiment_ids: Collection[str]
    ) -> Mapping[str, tuple[str, ...]]:
        own: dict[str, str] = {}
        others: defaultdict[str, set[str]] = defaultdict(set)
        async with self._database.read() as transaction:
            for chunk in chunks(sorted(set(experiment_ids))):
                parameters = {"experiment_ids": chunk}
                rows = await transaction.execute(self._statements.experiments.profiles, parameters)
                own |= dict(rows)
                for experiment_id, profile in await transaction.execute(
                    self._statements.aggregates.profiles_of_cells, parameters
                ):
                    others[experiment_id].add(profile)
        return {id_: (first, *sorted(others[id_] - {first})) for id_, first in own.items()}

    async def done_runs(
        self, experiment_id: str, run_ids: Collection[str], profile: str | None = None
    ) -> set[str]:
        done: set[str] = set()
        async with self._database.read() as transaction:
            for chunk in chunks(run_ids):
                parameters = {
                    "experiment_id": experiment_id,
                    "run_ids": chunk,
                    "profile": profile,
                }
                for (run_id,) in await transaction.execute(
                    self._statements.aggregates.done_runs, parameters
                ):
                    done.add(run_id)
                for (run_id,) in await transaction.execute(
                    self._statements.aggregates.runs_to_score, parameters
                ):
                    done.discard(run_id)
        return done

    async def ended_runs(self, experiment_id: str) -> Mapping[str, int]:
        parameters = {"experiment_id": experiment_id}
        async with self._database.read() as transaction:
            rows = await transaction.execute(ENDED_RUNS, parameters)
        return {model_id: int(runs) for model_id, runs in rows}

    async def failed_runs(self, experiment_id: str, run_ids: Collection[str]) -> set[str]:
        failed: set[str] = set()
        async with self._database.read() as transaction:
            for chunk in chunks(run_ids):
                parameters = {"experiment_id": experiment_id, "run_ids": chunk}
                rows = await transaction.execute(
                    self._statements.aggregates.failed_of_experiment, parameters
                )
                failed.update(run_id for (run_id,) in rows)
        return failed

    async def failure_kinds(self, experiment_id: str) -> Sequence[FailureCount]:
        of_experiment = {"experiment_id": experiment_id}
        last: dict[tuple[str, str], RunFailure] = {}
        async with self._database.read() as transaction:
            kinds = await transaction.execute(
                self._statements.aggregates.failure_kinds, of_experiment
            )
            for chunk in chunks(row[3] for row in kinds):
                parameters = {"experiment_ids": [experiment_id], "run_ids": chunk}
                rows = await transaction.execute(self._statements.aggregates.failures, parameters)
                last |= {
                    (each.run.run_id, each.profile): each for each in FAILURE_RECORDS.facts(rows)
                }
        return [
            FailureCount(failure.run.model_id, failure.kind, runs, failure.message)
            for _, _, runs, run_id, profile in kinds
            if (failure := last.get((run_id, profile)))
        ]

    async def cell_revisions(self, experiment_ids: Collection[str]) -> Mapping[str, str]:
        revisions: dict[str, str] = {}
        async with self._database.read() as transaction:
            for chunk in chunks(sorted(set(experiment_ids))):
                rows = await transaction.execute(
                    self._statements.aggregates.cell_revisions, {"experiment_ids": chunk}
                )
                revisions |= {id_: " ".join(map(str, counts)) for id_, *counts in rows}
        return revisions

    async def revision(self) -> str:
        try:
            return await self._revision(REVISION)
        except StoreBroken:  # a schema before 0008 has no such table
            return await self._revision(REVISION_BEFORE_0008)

    async def _revision(self, statement: Executable) -> str:
        [(revision,)] = await self._database.look_up(statement)
        return str(revision)
