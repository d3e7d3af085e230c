"""The states and pins of experiments in the SQL store, and the removal of deleted ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from socratic_bench.adapters.stores.records import microseconds, with_pin
from socratic_bench.adapters.stores.sql.batches import chunks
from socratic_bench.adapters.stores.sql.experiments.deleting import (
    DELETABLE,
    MAKE_TOMBSTONE,
    delete_some,
)
from socratic_bench.adapters.stores.sql.experiments.statements import (
    CHANGE_STATE,
    REPLACE_MANIFEST,
    TAKE_MANIFEST,
    TAKE_STATE,
    WAIT_FOR_HOLDERS,
)
from socratic_bench.adapters.stores.sql.role import SqlRole
from socratic_bench.adapters.stores.sql.transactions import Transaction
from socratic_bench.domain.experiment.state import LEFT_FOR, ExperimentState


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
        if present not in LEFT_FOR[to]:
            return present
        if to is ExperimentState.RESUMED and (not submitted or completed_at is not None):
            to = ExperimentState.OPEN
        parameters: dict[str, Any] = {"at_experiment_id": experiment_id}
        if to is ExperimentState.DELETED:
            parameters["at"] = await self._clock.now(transaction)
            await transaction.execute(MAKE_TOMBSTONE, parameters)
        else:
            await transaction.execute(CHANGE_STATE, {**parameters, "to": to})
        return to
