"""The states and pins of experiments in memory, and the removal of deleted ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from socratic_bench.adapters.stores.memory.role import MemoryRole
from socratic_bench.adapters.stores.memory.state import StoredExperiment
from socratic_bench.domain.experiment.state import LEFT_FOR, ExperimentState


class MemoryExperimentStates(MemoryRole):
    """Stops, resumes and pins experiments, and removes deleted ones."""

    async def states(self, experiment_ids: Collection[str]) -> Mapping[str, ExperimentState]:
        async with self._state_alone() as state:
            return {
                id_: state.experiments[id_].state
                for id_ in experiment_ids
                if id_ in state.experiments
            }

    async def change_state(self, experiment_id: str, to: ExperimentState) -> ExperimentState:
        async with self._state_alone() as state:
            stored = state.experiments.get(experiment_id)
            if stored is None:
                raise self._no_experiment(experiment_id)
            if stored.state not in LEFT_FOR[to]:
                return stored.state
            stored.state = _reached(stored, to)
            if stored.state is ExperimentState.DELETED:
                stored.manifest = None
                stored.completed_at = stored.completed_at or self._now()
            state.revision += 1
            return stored.state

    async def pin(self, experiment_id: str, at: datetime | None) -> None:
        async with self._state_alone() as state:
            stored = state.experiments.get(experiment_id)
            if stored is None or stored.manifest is None:
                raise self._no_experiment(experiment_id)
            stored.manifest = stored.manifest.model_copy(update={"pinned_at": at})
            state.revision += 1

    async def delete_rows(self, experiment_id: str) -> int:
        async with self._state_alone() as state:
            facts = state.facts_of(experiment_id)
            if not state.is_deleted(experiment_id) or not facts.rows:
                return 0
            del state.facts[experiment_id]
            for run_id in {turn.run_id for turn in facts.calls}:
                state.responses.pop(run_id, None)
            state.revision += 1
            return facts.rows

    async def deletable(self, completed_before: datetime | None) -> Sequence[str]:
        async with self._state_alone() as state:
            return [
                id_
                for id_, stored in state.experiments.items()
                if (
                    state.facts_of(id_).rows > 0
                    if stored.state is ExperimentState.DELETED
                    else _was_complete(stored, completed_before)
                )
            ]


def _reached(stored: StoredExperiment, to: ExperimentState) -> ExperimentState:
    """Return OPEN instead of RESUMED where the services have nothing to request again."""
    has_requests = stored.submitted and stored.completed_at is None
    if to is ExperimentState.RESUMED and not has_requests:
        return ExperimentState.OPEN
    return to


def _was_complete(stored: StoredExperiment, before: datetime | None) -> bool:
    return before is not None and stored.completed_at is not None and stored.completed_at < before
