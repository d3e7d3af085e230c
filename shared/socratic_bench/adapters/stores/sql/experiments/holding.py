"""Shared locks that keep experiments open, or undeleted, during a transaction.

A transaction that begins calls of an experiment, or stores facts of it, holds a shared lock on its
row until the end. A transaction that stops the experiment changes the row without waiting, and then
waits for all holders that have seen it unchanged. Every transaction locks this row before any
other, so that no two transactions deadlock.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Executable

from socratic_bench.adapters.stores.sql.batches import chunks
from socratic_bench.adapters.stores.sql.experiments.statements import ExperimentStatements
from socratic_bench.adapters.stores.sql.transactions import Transaction


# D-120: any earlier look leaves a moment in which calls begin after `cancel` returned.
async def stopped_among(
    transaction: Transaction, statements: ExperimentStatements, experiment_ids: Collection[str]
) -> set[str]:
    """Return those experiments whose calls may not begin; hold the others."""
    return await _refused(transaction, statements, statements.hold_open, experiment_ids)


async def deleted_among(
    transaction: Transaction, statements: ExperimentStatements, experiment_ids: Collection[str]
) -> set[str]:
    """Return the deleted ones of these experiments; hold the others."""
    return await _refused(transaction, statements, statements.hold_kept, experiment_ids)


async def _refused(
    transaction: Transaction,
    statements: ExperimentStatements,
    hold: Executable,
    experiment_ids: Collection[str],
) -> set[str]:
    """Return the registered experiments that cannot be held."""
    left = set(experiment_ids)
    for chunk in chunks(sorted(experiment_ids)):
        left.difference_update(
            id_ for (id_,) in await transaction.execute(hold, {"experiment_ids": chunk})
        )
    there = set[str]()
    for chunk in chunks(left):
        rows = await transaction.execute(statements.states, {"experiment_ids": chunk})
        there.update(id_ for id_, _ in rows)
    return there
