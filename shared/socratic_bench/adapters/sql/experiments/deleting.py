"""Deleting experiments: a tombstone at once, their rows some at a time."""

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

from socratic_bench.adapters.sql.batches import chunks
from socratic_bench.adapters.sql.experiments.statements import AT_EXPERIMENT, EXPERIMENT
from socratic_bench.adapters.sql.schema import (
    CALLS,
    CELLS,
    CONVERSATIONS,
    EXPERIMENTS,
    FAILED_RUNS,
    FAILURES,
    SCORES,
)
from socratic_bench.adapters.sql.statements import Statements
from socratic_bench.adapters.sql.transactions import Transaction
from socratic_bench.domain.experiment.state import ExperimentState

ROWS_AT_A_TIME = 2_000
"""How many rows of a table are removed in one transaction, at most."""

BURY = AT_EXPERIMENT.values(
    state=ExperimentState.DELETED,
    # D-122: late replies and scores must find out that the experiment is gone.
    manifest="{}",
    # A version that knows no states leaves alone what is complete.
    completed_at=func.coalesce(EXPERIMENTS.c.completed_at, bindparam("at")),
    revision=EXPERIMENTS.c.revision + 1,
)
"""What is left of a deleted experiment."""

DIG = (
    AT_EXPERIMENT.where(EXPERIMENTS.c.state == ExperimentState.DELETED)
    .values(revision=EXPERIMENTS.c.revision + 1)
    .returning(EXPERIMENTS.c.experiment_id)
)
"""Locks a deleted experiment. Its revision grows as that of its cells goes: no revision of the
store is like an earlier one."""

_OF_EXPERIMENTS = (CONVERSATIONS, SCORES, FAILURES, CELLS, FAILED_RUNS, CALLS)
"""The tables whose rows go with their experiment. Responses go with their calls."""

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
"""Takes `before`; nothing is earlier than None."""


def _delete_some(table: Table) -> Executable:
    """Give the keys of what is deleted."""
    key = list(table.primary_key.columns)
    some = (
        select(*key).where(table.c.experiment_id == EXPERIMENT).order_by(*key).limit(ROWS_AT_A_TIME)
    )
    return delete(table).where(tuple_(*key).in_(some)).returning(*key)


_DELETE_SOME = [(table, _delete_some(table)) for table in _OF_EXPERIMENTS]


async def delete_some(transaction: Transaction, statements: Statements, experiment_id: str) -> int:
    """Remove rows of a deleted experiment, of one table at a time; returns how many."""
    if not await transaction.execute(DIG, {"at_experiment_id": experiment_id}):
        return 0
    for table, statement in _DELETE_SOME:
        gone = await transaction.execute(statement, {"experiment_id": experiment_id})
        if table is CALLS:
            for chunk in chunks({run_id for _, run_id, _ in gone}):
                await transaction.execute(statements.responses.delete_responses, {"run_ids": chunk})
        if gone:
            return len(gone)
    return 0
