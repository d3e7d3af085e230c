"""The fold of facts into their cells, inside one transaction.

The cell of turn 1 guards all cells of an experiment, model, scenario and profile: a fold of any
turn locks it first, and then sees all earlier folds. A failure and the response that overrules it
may belong to different turns, but always to one scenario.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from socratic_bench.adapters.stores.records import record_of
from socratic_bench.adapters.stores.sql.aggregate_statements import (
    CELL_RECORDS,
    FAILURE_RECORDS,
    REPLACE_FAILURE,
    WITHDRAW_FAILURE,
    row_of_cell,
    row_of_failure,
    row_of_score,
)
from socratic_bench.adapters.stores.sql.dialect import chunks
from socratic_bench.adapters.stores.sql.experiment_statements import deleted_among
from socratic_bench.adapters.stores.sql.role import Statements
from socratic_bench.adapters.stores.sql.transactions import Transaction
from socratic_bench.domain.aggregates.cell import (
    Cell,
    CellKey,
    Fold,
    RunKey,
    ScoreKey,
    StoredFailure,
    key_of_failure,
    key_of_score,
    run_of,
    score_of,
)
from socratic_bench.domain.run import RunFailure
from socratic_bench.domain.score import ScoredResponse


class Folding:
    """One fold, for one writing transaction."""

    def __init__(self, transaction: Transaction, statements: Statements) -> None:
        self._transaction = transaction
        self._experiments = statements.experiments
        self._statements = statements.aggregates
        self._cells: dict[CellKey, Cell] = {}

    async def add(
        self, scores: Sequence[ScoredResponse], failures: Sequence[RunFailure]
    ) -> list[Cell]:
        """Store these facts and fold in the new ones; returns their cells by key."""
        scores, failures, dimensions = await self._take_guards(scores, failures)
        await self._take(dimensions)
        new = await self._insert_scores(_first_scores(scores))
        failing = set(map(run_of, failures))
        former = await self._former({run_of(each) for each in scores if each.last_turn} | failing)
        fold = Fold(self._cells, dict(former), await self._ended(failing))
        for scored in scores:
            # Of several scores of a turn in one call, the first one is new.
            fold.add_score(scored, is_new=score_of(scored) in new)
            new.discard(score_of(scored))
        for failure in failures:
            fold.add_failure(failure)
        await self._write_failures(fold, former)
        await self._write_cells(fold)
        return fold.touched

    async def _take_guards(
        self, scores: Sequence[ScoredResponse], failures: Sequence[RunFailure]
    ) -> tuple[Sequence[ScoredResponse], Sequence[RunFailure], dict[CellKey, str]]:
        """Lock and read the cells of turn 1, in the order of their keys.

        It locks existing and missing ones together: another fold may want the same ones. Returns
        the facts without those of deleted experiments, and their cells with the dimension of each.
        """
        kept = await self._not_deleted(scores, failures)
        dimensions = _dimensions(*kept)
        if await self._lock(_guards(dimensions)):
            await self._transaction.restart()  # releases the locked cells
            kept = await self._not_deleted(scores, failures)
            dimensions = _dimensions(*kept)
            await self._make(_guards(dimensions))
        return *kept, dimensions

    async def _not_deleted(
        self, scores: Sequence[ScoredResponse], failures: Sequence[RunFailure]
    ) -> tuple[Sequence[ScoredResponse], Sequence[RunFailure]]:
        """Return the facts of undeleted experiments, whose deletion now waits for this fold."""
        ids = {scored.run.experiment_id for scored in scores}
        ids |= {failure.run.experiment_id for failure in failures}
        deleted = await deleted_among(self._transaction, self._experiments, ids)
        if not deleted:
            return scores, failures
        return (
            [scored for scored in scores if scored.run.experiment_id not in deleted],
            [failure for failure in failures if failure.run.experiment_id not in deleted],
        )

    async def _take(self, dimensions: dict[CellKey, str]) -> None:
        """Lock and read further cells, whose guards are locked."""
        if missing := await self._lock(dimensions):
            await self._make({key: dimensions[key] for key in missing})

    async def _lock(self, keys: Iterable[CellKey]) -> Collection[CellKey]:
        """Lock and read the existing ones of these cells; returns the missing ones."""
        wanted = sorted(set(keys) - self._cells.keys())
        for chunk in chunks(wanted):
            parameters = self._statements.keys_of_cells(chunk)
            self._know(await self._transaction.execute(self._statements.take_cells, parameters))
        return [key for key in wanted if key not in self._cells]

    async def _make(self, dimensions: dict[CellKey, str]) -> None:
        """Lock and read cells, making missing ones, in the order of their keys."""
        if not dimensions:
            return
        empty = [row_of_cell(Cell(key, dimensions[key])) for key in sorted(dimensions)]
        rows = self._statements.rows(empty)
        self._know(await self._transaction.execute(self._statements.make_cells, rows))

    def _know(self, rows: Iterable[Sequence[Any]]) -> None:
        for row in rows:
            cell = CELL_RECORDS.fact(row)
            self._cells[cell.key] = cell

    async def _insert_scores(self, scores: dict[ScoreKey, ScoredResponse]) -> set[ScoreKey]:
        """Store scores; returns the keys of the new ones."""
        if not scores:
            return set()
        rows = [row_of_score(scores[key]) for key in sorted(scores)]
        inserted = await self._transaction.insert(self._statements.insert_scores, rows)
        return {ScoreKey._make(row) for row in inserted}

    async def _former(self, runs: Collection[RunKey]) -> dict[RunKey, StoredFailure]:
        """Return the stored failures of these runs, with their cells locked."""
        former: dict[RunKey, StoredFailure] = {}
        ids = {"experiment_ids": list({run.experiment_id for run in runs})}
        if not runs or not await self._transaction.execute(self._statements.has_failures, ids):
            return former
        for chunk in chunks(runs):
            rows = await self._transaction.execute(self._statements.failures, _ids(chunk))
            for row in rows:
                failure = FAILURE_RECORDS.fact(row)
                if run_of(failure) in runs:
                    former[run_of(failure)] = StoredFailure(failure, row.counted)
        await self._take(
            {key_of_failure(failure): failure.run.dimension for failure, _ in former.values()}
        )
        return former

    async def _ended(self, runs: Iterable[RunKey]) -> set[RunKey]:
        """Return those of these runs that have a score of their last turn."""
        ended: set[RunKey] = set()
        for chunk in chunks(sorted(runs)):
            rows = await self._transaction.execute(self._statements.ended_runs, _ids(chunk))
            ended.update(RunKey._make(row) for row in rows)
        return ended

    async def _write_failures(self, fold: Fold, former: Mapping[RunKey, StoredFailure]) -> None:
        new = [
            row_of_failure(fold.failures[run].failure, counted=fold.failures[run].counted)
            for run in sorted(fold.written - former.keys())
        ]
        if new:
            rows = self._statements.rows(new)
            await self._transaction.execute(self._statements.insert_failures, rows)
        if replaced := sorted(fold.written & former.keys()):
            records = [record_of(fold.failures[run].failure) for run in replaced]
            parameters = [
                {**_at(run), "record": record}
                for run, record in zip(replaced, records, strict=True)
            ]
            await self._transaction.execute(REPLACE_FAILURE, parameters)
        uncounted = [
            run
            for run in sorted(fold.withdrawn)
            if not fold.failures[run].counted and run in former
        ]
        if uncounted:
            await self._transaction.execute(WITHDRAW_FAILURE, [_at(run) for run in uncounted])

    async def _write_cells(self, fold: Fold) -> None:
        if fold.changed:
            cells = [row_of_cell(fold.cells[key]) for key in sorted(fold.changed)]
            await self._transaction.execute(
                self._statements.write_cells, self._statements.rows(cells)
            )


def _dimensions(
    scores: Iterable[ScoredResponse], failures: Iterable[RunFailure]
) -> dict[CellKey, str]:
    """Return the cells of these facts, with the dimension of each."""
    dimensions = {key_of_score(scored): scored.run.dimension for scored in scores}
    return dimensions | {key_of_failure(failure): failure.run.dimension for failure in failures}


def _guards(dimensions: Mapping[CellKey, str]) -> dict[CellKey, str]:
    return {key._replace(turn=1): name for key, name in dimensions.items()}


def _first_scores(scores: Iterable[ScoredResponse]) -> dict[ScoreKey, ScoredResponse]:
    """Return the first score of each key."""
    firsts: dict[ScoreKey, ScoredResponse] = {}
    for scored in scores:
        firsts.setdefault(score_of(scored), scored)
    return firsts


def _ids(runs: Iterable[RunKey]) -> dict[str, list[str]]:
    """Return the parameters of a statement about these runs."""
    return {
        "experiment_ids": list({run.experiment_id for run in runs}),
        "run_ids": list({run.run_id for run in runs}),
    }


def _at(key: RunKey) -> dict[str, Any]:
    """Return the parameters for the key of the updated row."""
    return {f"at_{name}": value for name, value in key._asdict().items()}
