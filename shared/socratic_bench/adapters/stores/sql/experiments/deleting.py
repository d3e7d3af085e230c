"""The deletion of experiments: a tombstone at once, their rows in batches."""

from __future__ import annotations

from sqlalchemy import (
    Executable,
    Table,
    and_,
    bindparam,
    delete,
    exists,
    func,
    or_,
    select,
    tuple_,
)

from socratic_bench.adapters.stores.sql.batches import chunks
from socratic_bench.adapters.stores.sql.experiments.statements import (
    AT_EXPERIMENT,
    EXPERIMENT,
    TAKE_STATE,
)
from socratic_bench.adapters.stores.sql.schema import (
    CALLS,
    CELLS,
    CONVERSATIONS,
    EXPERIMENTS,
    FAILED_RUNS,
    FAILURES,
    NO_MANIFEST,
    SCORES,
)
from socratic_bench.adapters.stores.sql.statements import Statements
from socratic_bench.adapters.stores.sql.transactions import Transaction
from socratic_bench.domain.experiment.state import ExperimentState

ROWS_AT_A_TIME = 2_000
"""The most rows of a table that one transaction removes."""

MAKE_TOMBSTONE = AT_EXPERIMENT.values(
    state=ExperimentState.DELETED,
    # D-120: late replies and scores must see the deletion.
    manifest=NO_MANIFEST,
    # A version without states skips complete experiments.
    completed_at=func.coalesce(EXPERIMENTS.c.completed_at, bindparam("at")),
    revision=EXPERIMENTS.c.revision + 1,
)
"""Turns an experiment into a tombstone."""

_GROW_REVISION = AT_EXPERIMENT.values(revision=EXPERIMENTS.c.revision + 1)
"""The revision of a tombstone grows by that of its removed cells: the store never repeats one."""

_OF_EXPERIMENTS = (CONVERSATIONS, SCORES, FAILURES, CELLS, FAILED_RUNS, CALLS)
"""The tables whose rows are deleted with their experiment; responses are deleted with calls."""

DELETABLE = select(EXPERIMENTS.c.experiment_id).where(
    or_(
        and_(
            EXPERIMENTS.c.state == ExperimentState.DELETED,
            or_(
                *(
                    exists().where(table.c.experiment_id == EXPERIMENTS.c.experiment_id)
                    for table in _OF_EXPERIMENTS
                )
            ),
        ),
        and_(
            EXPERIMENTS.c.state != ExperimentState.DELETED,
            EXPERIMENTS.c.completed_at < bindparam("before"),
        ),
    )
)
"""Takes `before`; None selects nothing."""


def _delete_some(table: Table) -> Executable:
    """Return a statement that deletes some rows and returns their keys."""
    key = list(table.primary_key.columns)
    some = (
        select(*key).where(table.c.experiment_id == EXPERIMENT).order_by(*key).limit(ROWS_AT_A_TIME)
    )
    return delete(table).where(tuple_(*key).in_(some)).returning(*key)


_DELETE_SOME = [(table, _delete_some(table)) for table in _OF_EXPERIMENTS]


async def delete_some(transaction: Transaction, statements: Statements, experiment_id: str) -> int:
    """Remove rows of a deleted experiment, of one table at a time; returns their number."""
    found = await transaction.execute(TAKE_STATE, {"experiment_id": experiment_id})
    if not any(row.state == ExperimentState.DELETED for row in found):
        return 0
    removed = await _remove_rows(transaction, statements, experiment_id)
    if removed:
        # The last statement: its trigger locks a row of `changes`, for which a fold may wait.
        await transaction.execute(_GROW_REVISION, {"at_experiment_id": experiment_id})
    return removed


async def _remove_rows(transaction: Transaction, statements: Statements, experiment_id: str) -> int:
    for table, statement in _DELETE_SOME:
        gone = await transaction.execute(statement, {"experiment_id": experiment_id})
        if table is CALLS:
            for chunk in chunks({run_id for _, run_id, _ in gone}):
                await transaction.execute(statements.responses.delete_responses, {"run_ids": chunk})
        if gone:
            return len(gone)
    return 0
