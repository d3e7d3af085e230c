"""Holding experiments open, or undeleted, while a transaction goes on.

A transaction that begins calls of an experiment, or stores facts of it, holds its row until the
end, beside others that do so too. A transaction that stops the experiment changes the row, which
waits for none of them, and then waits until none holds it that has seen it unchanged. Every
transaction takes this row before any other: no two of them wait for each other crosswise.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Executable

from socratic_bench.adapters.sql.batches import chunks
from socratic_bench.adapters.sql.experiments.statements import ExperimentStatements
from socratic_bench.adapters.sql.transactions import Transaction


# D-120: any earlier look leaves a moment in which calls begin after `cancel` returned.
async def stopped_among(
    transaction: Transaction, statements: ExperimentStatements, experiment_ids: Collection[str]
) -> set[str]:
    """Those of these experiments of which no call may begin; the others are held."""
    return await _refused(transaction, statements, statements.hold_open, experiment_ids)


async def deleted_among(
    transaction: Transaction, statements: ExperimentStatements, experiment_ids: Collection[str]
) -> set[str]:
    """Those of these experiments that are deleted; the others are held."""
    return await _refused(transaction, statements, statements.hold_kept, experiment_ids)


async def _refused(
    transaction: Transaction,
    statements: ExperimentStatements,
    hold: Executable,
    experiment_ids: Collection[str],
) -> set[str]:
    """Those that are there and cannot be held. One that is not registered is not refused."""
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
