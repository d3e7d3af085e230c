"""The fold of facts into their cells, inside one transaction.

The cell of turn 1 guards all cells of an experiment, model, scenario and profile: a fold of any
turn locks it first, and then sees all earlier folds. A failure and the response that overrules it
may belong to different turns, but always to one scenario.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

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
from socratic_bench.domain.aggregates.cell import Cell, CellKey, key_of_failure, key_of_score
from socratic_bench.domain.aggregates.facts import (
    RunKey,
    ScoreKey,
    furthest,
    outranks,
    run_of,
    score_of,
)
from socratic_bench.domain.run import RunFailure
from socratic_bench.domain.score import ScoredResponse


class StoredFailure(NamedTuple):
    """A stored failure."""

    failure: RunFailure
    counted: bool
    """Whether its cell counts it."""


class Fold:
    """One fold, for one writing transaction."""

    def __init__(self, transaction: Transaction, statements: Statements) -> None:
        self._transaction = transaction
        self._experiments = statements.experiments
        self._statements = statements.aggregates
        self._cells: dict[CellKey, Cell] = {}
        self._changed: set[CellKey] = set()

    async def add(
        self, scores: Sequence[ScoredResponse], failures: Sequence[RunFailure]
    ) -> list[Cell]:
        """Store these facts and fold in the new ones; returns their cells by key."""
        scores, failures, dimensions = await self._take_guards(scores, failures)
        await self._take(dimensions)
        await self._add_scores(_first_scores(scores))
        overruled: set[CellKey] = set()
        if scores and await self._have_failures({key.experiment_id for key in dimensions}):
            overruled |= await self._withdraw_failures(
                {run_of(scored) for scored in scores if scored.last_turn}
            )
        if failures:
            overruled |= await self._add_failures(furthest(failures))
        await self._write_cells()
        cells = (self._cells[key] for key in sorted(overruled.union(dimensions)))
        return [cell for cell in cells if cell.responses]

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

    async def _add_scores(self, scores: dict[ScoreKey, ScoredResponse]) -> None:
        if not scores:
            return
        rows = [row_of_score(scores[key]) for key in sorted(scores)]
        for row in await self._transaction.insert(self._statements.insert_scores, rows):
            scored = scores[ScoreKey._make(row)]
            self._cell_to_change(key_of_score(scored)).add_score(scored)

    async def _withdraw_failures(self, ended: Collection[RunKey]) -> set[CellKey]:
        """Withdraw the failures of these runs; returns the cells that counted them."""
        # D-021: keeping whichever came first would make figures depend on the order.
        stored = await self._stored_failures(ended)
        counted = [run for run, failure in stored.items() if failure.counted]
        for run in counted:
            self._cell_to_change(key_of_failure(stored[run].failure)).withdraw_failure()
        if counted:
            await self._transaction.execute(WITHDRAW_FAILURE, [_at(run) for run in counted])
        return {key_of_failure(failure.failure) for failure in stored.values()}

    async def _add_failures(self, failures: dict[RunKey, RunFailure]) -> set[CellKey]:
        """Store failures that are new, or at higher turns than the stored ones of their runs.

        Returns the cells that counted the former failures.
        """
        stored = await self._stored_failures(failures)
        new = sorted(failures.keys() - stored.keys())
        further = sorted(run for run in stored if outranks(failures[run], stored[run].failure))
        ended: set[RunKey] = set()
        for runs in chunks([*new, *further]):
            rows = await self._transaction.execute(self._statements.ended_runs, _ids(runs))
            ended.update(RunKey._make(row) for row in rows)
        if new:
            records = [row_of_failure(failures[run], counted=run not in ended) for run in new]
            await self._transaction.execute(
                self._statements.insert_failures, self._statements.rows(records)
            )
        if further:
            replacements = [{**_at(run), "record": record_of(failures[run])} for run in further]
            await self._transaction.execute(REPLACE_FAILURE, replacements)
        for run in further:
            if stored[run].counted:
                self._cell_to_change(key_of_failure(stored[run].failure)).withdraw_failure()
        for run in (*new, *further):
            if run not in ended:
                self._cell_to_change(key_of_failure(failures[run])).add_failure()
        return {key_of_failure(stored[run].failure) for run in further}

    async def _have_failures(self, experiment_ids: Collection[str]) -> bool:
        """Whether the store has a failure of these experiments."""
        if not experiment_ids:
            return False
        parameters = {"experiment_ids": list(experiment_ids)}
        return bool(await self._transaction.execute(self._statements.has_failures, parameters))

    async def _stored_failures(self, runs: Collection[RunKey]) -> dict[RunKey, StoredFailure]:
        """Return the stored failures of these runs, with their cells locked."""
        stored: dict[RunKey, StoredFailure] = {}
        if await self._have_failures({run.experiment_id for run in runs}):
            for chunk in chunks(runs):
                rows = await self._transaction.execute(self._statements.failures, _ids(chunk))
                for row in rows:
                    failure = FAILURE_RECORDS.fact(row)
                    if run_of(failure) in runs:
                        stored[run_of(failure)] = StoredFailure(failure, row.counted)
        await self._take(
            {key_of_failure(failure): failure.run.dimension for failure, _ in stored.values()}
        )
        return stored

    async def _write_cells(self) -> None:
        if self._changed:
            cells = [row_of_cell(self._cells[key]) for key in sorted(self._changed)]
            await self._transaction.execute(
                self._statements.write_cells, self._statements.rows(cells)
            )

    def _cell_to_change(self, key: CellKey) -> Cell:
        self._changed.add(key)
        return self._cells[key]


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
