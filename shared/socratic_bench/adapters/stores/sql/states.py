"""The states and pins of experiments in the SQL store, and the removal of deleted ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

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

from socratic_bench.adapters.stores.records import microseconds, with_pin
from socratic_bench.adapters.stores.sql.dialect import chunks
from socratic_bench.adapters.stores.sql.experiment_statements import (
    AT_EXPERIMENT,
    CHANGE_STATE,
    EXPERIMENT,
    REPLACE_MANIFEST,
    TAKE_MANIFEST,
    TAKE_STATE,
    WAIT_FOR_HOLDERS,
)
from socratic_bench.adapters.stores.sql.role import SqlRole, Statements
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
from socratic_bench.adapters.stores.sql.transactions import Transaction
from socratic_bench.domain.experiment.state import ExperimentState, decided

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


class SqlExperimentStates(SqlRole):
    """Stops, resumes and pins experiments, and removes deleted ones."""

    async def states(self, experiment_ids: Collection[str]) -> Mapping[str, ExperimentState]:
        states: dict[str, ExperimentState] = {}
        for chunk in chunks(experiment_ids):
            rows = await self._database.look_up(
                self._statements.experiments.states, {"experiment_ids": chunk}
            )
            states.update((id_, ExperimentState(state)) for id_, state in rows)
        return states

    async def change_state(self, experiment_id: str, to: ExperimentState) -> ExperimentState:
        async with self._database.write() as transaction:
            state = await self._change_state(transaction, experiment_id, to)
        if not state.calls_may_begin:
            async with self._database.write() as transaction:
                await transaction.execute(WAIT_FOR_HOLDERS, {"experiment_id": experiment_id})
        return state

    async def pin(self, experiment_id: str, at: datetime | None) -> None:
        async with self._database.write() as transaction:
            rows = await transaction.execute(TAKE_MANIFEST, {"experiment_id": experiment_id})
            if not rows:
                raise self._no_experiment(experiment_id)
            pinned = {"at_experiment_id": experiment_id, "manifest": with_pin(rows[0].manifest, at)}
            await transaction.execute(REPLACE_MANIFEST, pinned)

    async def delete_rows(self, experiment_id: str) -> int:
        async with self._database.write() as transaction:
            return await delete_some(transaction, self._statements, experiment_id)

    async def deletable(self, completed_before: datetime | None) -> Sequence[str]:
        before = None if completed_before is None else microseconds(completed_before)
        async with self._database.read() as transaction:
            rows = await transaction.execute(DELETABLE, {"before": before})
        return [experiment_id for (experiment_id,) in rows]

    async def _change_state(
        self, transaction: Transaction, experiment_id: str, to: ExperimentState
    ) -> ExperimentState:
        rows = await transaction.execute(TAKE_STATE, {"experiment_id": experiment_id})
        if not rows:
            raise self._no_experiment(experiment_id)
        [(state, submitted, completed_at)] = rows
        present = ExperimentState(state)
        to = decided(present, to, has_requests=submitted and completed_at is None)
        if to is present:
            return present
        parameters: dict[str, Any] = {"at_experiment_id": experiment_id}
        if to is ExperimentState.DELETED:
            parameters["at"] = await self._clock.now(transaction)
            await transaction.execute(MAKE_TOMBSTONE, parameters)
        else:
            await transaction.execute(CHANGE_STATE, {**parameters, "to": to})
        return to
