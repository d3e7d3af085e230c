"""The role `Experiments` of the store in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime

from socratic_bench.adapters.stores.memory.state import MemoryRole, StoredExperiment, StoreState
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.domain.experiment.state import (
    ExperimentState,
    decided,
    standing,
    stopped_sentence,
)
from socratic_bench.domain.leasing import Account
from socratic_bench.domain.money import nanodollars
from socratic_bench.errors import ExperimentStopped
from socratic_bench.ports.stores.experiments import ExperimentCounts, Progress, RunningExperiment


class MemoryExperiments(MemoryRole):
    """Registers, stops and completes experiments, reports their progress, and deletes them."""

    async def register(self, experiment: Experiment) -> Experiment:
        async with self._state_alone() as state:
            known = state.experiments.get(experiment.experiment_id)
            stored = _update(state, known, experiment) if known else _add(state, experiment)
            budget = experiment.manifest.budget
            account = state.accounts.setdefault(experiment.experiment_id, Account())
            account.set_budget(None if budget is None else nanodollars(budget))
            conversations = state.facts_to_change(stored.experiment_id).conversations
            for key in experiment.reuse_keys:
                conversations.setdefault(key, stored.created_at)
            return stored.experiment() or experiment

    async def experiment(self, experiment_id: str) -> Experiment | None:
        async with self._state_alone() as state:
            stored = state.experiments.get(experiment_id)
            return None if stored is None else stored.experiment()

    async def experiments(
        self, experiment_ids: Collection[str] | None = None
    ) -> Sequence[Experiment]:
        async with self._state_alone() as state:
            wanted = state.experiments if experiment_ids is None else set(experiment_ids)
            found = (state.experiments[id_] for id_ in wanted if id_ in state.experiments)
            return [each for stored in _newest_first(found) if (each := stored.experiment())]

    async def outlines(self) -> Sequence[ExperimentOutline]:
        return [ExperimentOutline.of(experiment) for experiment in await self.experiments()]

    async def count_experiments(self) -> ExperimentCounts:
        counts: Counter[str] = Counter()
        async with self._state_alone() as state:
            for stored in state.experiments.values():
                word = standing(
                    stored.state,
                    is_complete=stored.completed_at is not None,
                    is_exhausted=state.accounts[stored.experiment_id].exhausted,
                )
                counts[word] += 1
        return ExperimentCounts(
            **{each.name: counts[each.name] for each in fields(ExperimentCounts)}
        )

    async def complete(
        self, experiment_id: str, at: datetime, stopped_after: int | None = None
    ) -> datetime | None:
        async with self._state_alone() as state:
            stored = state.experiments.get(experiment_id)
            if stored is None or stored.completed_at is not None:
                return None if stored is None else stored.completed_at
            manifest, planned = stored.manifest, stored.planned_runs
            if stopped_after is not None and manifest is not None:
                manifest = manifest.model_copy(update={"stopped_after": stopped_after})
                planned = manifest.planned_runs
            left = planned - _done(state, stored)
            is_unscored = any(True for _ in state.unscored(experiment_id))
            if is_unscored or left > 0 or (left and stopped_after is not None):
                return None
            stored.manifest, stored.planned_runs, stored.completed_at = manifest, planned, at
            state.revision += 1
            return at

    async def asked_in(
        self, conversation_keys: Collection[str], most: int
    ) -> Mapping[str, Sequence[str]]:
        wanted, asked_in = set(conversation_keys), dict[str, list[StoredExperiment]]()
        async with self._state_alone() as state:
            for id_, facts in state.facts.items():
                for key in wanted & facts.conversations.keys():
                    asked_in.setdefault(key, []).append(state.experiments[id_])
            return {
                key: [stored.experiment_id for stored in _newest_first(found)[:most]]
                for key, found in asked_in.items()
            }

    async def mark_planned(self, experiment_id: str, at: datetime) -> None:
        async with self._state_alone() as state:
            stored = state.experiments.get(experiment_id)
            if stored is not None and stored.planned_at is None:
                stored.planned_at = at

    async def running(self) -> Sequence[RunningExperiment]:
        async with self._state_alone() as state:
            return [
                RunningExperiment(
                    experiment_id=each.experiment_id,
                    created_at=each.created_at,
                    planned_at=each.planned_at,
                    groups=each.manifest.request_groups,
                    exhausted=state.accounts[each.experiment_id].exhausted,
                    state=each.state,
                )
                for each in _newest_first(state.experiments.values())
                if each.manifest is not None and each.completed_at is None and each.submitted
            ]

    async def progress(self, experiment_id: str) -> Progress:
        if progress := (await self.progress_of([experiment_id])).get(experiment_id):
            return progress
        raise self._no_experiment(experiment_id)

    async def progress_of(self, experiment_ids: Collection[str]) -> Mapping[str, Progress]:
        async with self._state_alone() as state:
            return {
                id_: Progress(stored.planned_runs, _done(state, stored), _failed(state, stored))
                for id_ in experiment_ids
                if (stored := state.experiments.get(id_)) is not None
            }

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
            has_requests = stored.submitted and stored.completed_at is None
            changed = decided(stored.state, to, has_requests=has_requests)
            if changed is stored.state:
                return changed
            stored.state = changed
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


def _was_complete(stored: StoredExperiment, before: datetime | None) -> bool:
    return before is not None and stored.completed_at is not None and stored.completed_at < before


def _add(state: StoreState, experiment: Experiment) -> StoredExperiment:
    stored = StoredExperiment(
        experiment_id=experiment.experiment_id,
        manifest=experiment.manifest.model_copy(deep=True),
        occasion=experiment.occasion,
        profile=experiment.manifest.profile,
        planned_runs=experiment.manifest.planned_runs,
        created_at=experiment.created_at,
        completed_at=experiment.completed_at,
        state=experiment.state,
        submitted=experiment.submitted,
    )
    state.experiments[stored.experiment_id] = stored
    state.revision += 1
    return stored


def _update(
    state: StoreState, stored: StoredExperiment, experiment: Experiment
) -> StoredExperiment:
    """Update the fields outside an experiment's identity."""
    if not stored.state.calls_may_begin:
        raise ExperimentStopped(stopped_sentence(stored.experiment_id, stored.state))
    submitted = stored.submitted or experiment.submitted
    manifest = experiment.manifest
    if stored.manifest is not None:
        manifest = manifest.keeping(stored.manifest)
    if (stored.manifest, stored.submitted) != (manifest, submitted):
        stored.manifest = manifest.model_copy(deep=True)
        stored.submitted = submitted
        state.revision += 1
    return stored


def _newest_first(experiments: Iterable[StoredExperiment]) -> list[StoredExperiment]:
    by_id = sorted(experiments, key=lambda each: each.experiment_id)
    return sorted(by_id, key=lambda each: each.created_at, reverse=True)


def _done(state: StoreState, stored: StoredExperiment) -> int:
    """Count the runs that ended under the experiment's profile."""
    cells = state.facts_of(stored.experiment_id).cells
    return sum(cell.runs_ended for key, cell in cells.items() if key.profile == stored.profile)


def _failed(state: StoreState, stored: StoredExperiment) -> int:
    """Count the runs that failed under the experiment's profile."""
    failures = state.facts_of(stored.experiment_id).failures
    return sum(each.counted for run, each in failures.items() if run.profile == stored.profile)
