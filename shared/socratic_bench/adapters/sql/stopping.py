"""Stopping experiments, and what is held against it while a transaction goes on.

Whoever begins calls of an experiment, or stores facts of it, holds its row until the end of the
transaction, beside others that do so too. Whoever stops the experiment changes the row, which waits
for none of them, and then waits until nobody holds it who has seen it unchanged. The row is always
taken before any other: no two transactions wait for each other crosswise.
"""

from __future__ import annotations

from collections.abc import Collection

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
    update,
)

from socratic_bench.adapters.sql.batched import Lookups, chunks
from socratic_bench.adapters.sql.schema import (
    CALLS,
    CELLS,
    CONVERSATIONS,
    EXPERIMENTS,
    FAILED_RUNS,
    FAILURES,
    SCORES,
)
from socratic_bench.adapters.sql.statements import EXPERIMENT
from socratic_bench.adapters.sql.transactions import Transaction
from socratic_bench.domain.experiment_state import ExperimentState

ROWS_AT_A_TIME = 2_000
"""How many rows of a table are removed in one transaction, at most."""

TAKE_STATE = (
    select(EXPERIMENTS.c.state, EXPERIMENTS.c.submitted, EXPERIMENTS.c.completed_at)
    .where(EXPERIMENTS.c.experiment_id == EXPERIMENT)
    .with_for_update(key_share=True)
)

WAIT_FOR_HOLDERS = (
    select(EXPERIMENTS.c.experiment_id)
    .where(EXPERIMENTS.c.experiment_id == EXPERIMENT)
    .with_for_update()
)

_AT = update(EXPERIMENTS).where(EXPERIMENTS.c.experiment_id == bindparam("at_experiment_id"))

CHANGE_STATE = _AT.values(state=bindparam("to"), revision=EXPERIMENTS.c.revision + 1)

BURY = _AT.values(
    state=ExperimentState.DELETED,
    manifest="{}",
    # A version that knows no states leaves alone what is complete.
    completed_at=func.coalesce(EXPERIMENTS.c.completed_at, bindparam("at")),
    revision=EXPERIMENTS.c.revision + 1,
)
"""What is left of a deleted experiment."""

DIG = (
    _AT.where(EXPERIMENTS.c.state == ExperimentState.DELETED)
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


async def stopped_among(
    transaction: Transaction, lookups: Lookups, experiment_ids: Collection[str]
) -> set[str]:
    """Those of these experiments of which no call may begin; the others are held."""
    return await _refused(transaction, lookups, lookups.hold_open, experiment_ids)


async def deleted_among(
    transaction: Transaction, lookups: Lookups, experiment_ids: Collection[str]
) -> set[str]:
    """Those of these experiments that are deleted; the others are held."""
    return await _refused(transaction, lookups, lookups.hold_kept, experiment_ids)


async def _refused(
    transaction: Transaction, lookups: Lookups, hold: Executable, experiment_ids: Collection[str]
) -> set[str]:
    """Those that are there and cannot be held. One that nobody registered is not refused."""
    left = set(experiment_ids)
    for chunk in chunks(sorted(experiment_ids)):
        left.difference_update(
            id_ for (id_,) in await transaction.execute(hold, {"experiment_ids": chunk})
        )
    there = set[str]()
    for chunk in chunks(left):
        rows = await transaction.execute(lookups.states, {"experiment_ids": chunk})
        there.update(id_ for id_, _ in rows)
    return there


async def delete_some(transaction: Transaction, lookups: Lookups, experiment_id: str) -> int:
    """Remove rows of a deleted experiment, of one table at a time; returns how many."""
    if not await transaction.execute(DIG, {"at_experiment_id": experiment_id}):
        return 0
    for table, statement in _DELETE_SOME:
        gone = await transaction.execute(statement, {"experiment_id": experiment_id})
        if table is CALLS:
            for chunk in chunks({run_id for _, run_id, _ in gone}):
                await transaction.execute(lookups.delete_responses, {"run_ids": chunk})
        if gone:
            return len(gone)
    return 0
