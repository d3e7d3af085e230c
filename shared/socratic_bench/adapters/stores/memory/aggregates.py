"""The role `Aggregates` of the store in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from copy import deepcopy
from itertools import chain
from typing import Final

from socratic_bench.adapters.stores.memory.folding import Fold
from socratic_bench.adapters.stores.memory.role import MemoryRole
from socratic_bench.adapters.stores.memory.state import StoreState
from socratic_bench.domain.aggregates.cell import Cell
from socratic_bench.domain.aggregates.facts import RunKey, ScoreKey
from socratic_bench.domain.run import RunFailure
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.ports.stores.aggregates import FailureCount

PAGE: Final = 500
"""The number of scores or failures in a page."""


class MemoryAggregates(MemoryRole):
    """Folds scores and failures into cells, and reads all three."""

    async def fold(
        self, scores: Sequence[ScoredResponse], failures: Sequence[RunFailure]
    ) -> Sequence[Cell]:
        async with self._state_alone() as state:
            fold = Fold(state)
            for scored in scores:
                fold.add_score(scored)
            for failure in failures:
                fold.add_failure(failure)
            return deepcopy(fold.cells())

    async def cells(
        self, experiment_ids: Collection[str] | None = None, model_id: str | None = None
    ) -> Sequence[Cell]:
        async with self._state_alone() as state:
            ids = state.facts.keys() if experiment_ids is None else set(experiment_ids)
            cells = chain.from_iterable(state.facts_of(id_).cells.values() for id_ in ids)
            found = [
                cell for cell in cells if cell.responses and model_id in {None, cell.key.model_id}
            ]
            return deepcopy(sorted(found, key=lambda cell: cell.key))

    async def score_rows(self, experiment_id: str) -> AsyncIterator[Sequence[ScoredResponse]]:
        """Yield pages, each read in its own step, so that a slow reader holds nothing up."""
        async with self._state_alone() as state:
            keys = sorted(state.facts_of(experiment_id).scores)
        for start in range(0, len(keys), PAGE):
            async with self._state_alone() as state:
                scores = state.facts_of(experiment_id).scores
                page = [scores[key] for key in keys[start : start + PAGE] if key in scores]
                copies = [scored.model_copy(deep=True) for scored in page]
            yield copies

    async def failure_rows(self, experiment_id: str) -> AsyncIterator[Sequence[RunFailure]]:
        """Yield pages, as `score_rows` does."""
        async with self._state_alone() as state:
            keys = sorted(state.facts_of(experiment_id).failures)
        for start in range(0, len(keys), PAGE):
            async with self._state_alone() as state:
                failures = state.facts_of(experiment_id).failures
                page = [failures[key] for key in keys[start : start + PAGE] if key in failures]
                copies = [stored.failure.model_copy(deep=True) for stored in page]
            yield copies

    async def scored_profiles(
        self, experiment_ids: Collection[str]
    ) -> Mapping[str, tuple[str, ...]]:
        async with self._state_alone() as state:
            return {
                id_: (stored.profile, *sorted(found - {stored.profile}))
                for id_ in experiment_ids
                if (stored := state.experiments.get(id_)) and not state.is_deleted(id_)
                for found in [{key.profile for key in state.facts_of(id_).cells}]
            }

    async def done_runs(
        self, experiment_id: str, run_ids: Collection[str], profile: str | None = None
    ) -> set[str]:
        async with self._state_alone() as state:
            under = profile or state.profile_of(experiment_id)
            if under is None or state.profile_of(experiment_id) is None:
                return set()
            runs = (RunKey(experiment_id, run_id, under) for run_id in run_ids)
            return {run.run_id for run in runs if _is_done(state, experiment_id, run)}

    async def ended_runs(self, experiment_id: str) -> Mapping[str, int]:
        runs: Counter[str] = Counter()
        async with self._state_alone() as state:
            profile = state.profile_of(experiment_id)
            for key, cell in state.facts_of(experiment_id).cells.items():
                if key.profile == profile:
                    runs[key.model_id] += cell.runs_ended
        return +runs

    async def failed_runs(self, experiment_id: str, run_ids: Collection[str]) -> set[str]:
        async with self._state_alone() as state:
            failed = {run.run_id for run in state.facts_of(experiment_id).failures}
        return failed.intersection(run_ids)

    async def failure_kinds(self, experiment_id: str) -> Sequence[FailureCount]:
        of_kinds: dict[tuple[str, str], list[RunFailure]] = {}
        async with self._state_alone() as state:
            own_profile = state.profile_of(experiment_id)
            failures = state.facts_of(experiment_id).failures
            for _, run_id, profile in sorted(failures):
                failure = failures[RunKey(experiment_id, run_id, profile)].failure
                if profile == own_profile and not _is_answered(state, run_id):
                    of_kinds.setdefault((failure.run.model_id, failure.kind), []).append(failure)
        counts = [
            FailureCount(model_id, kind, len(failed), failed[-1].message)
            for (model_id, kind), failed in of_kinds.items()
        ]
        return sorted(counts, key=lambda each: (each.model_id, -each.runs, each.kind))

    async def cell_revisions(self, experiment_ids: Collection[str]) -> Mapping[str, str]:
        async with self._state_alone() as state:
            return {
                id_: str(state.cell_revisions[id_])
                for id_ in experiment_ids
                if id_ in state.experiments and not state.is_deleted(id_)
            }

    async def revision(self) -> str:
        async with self._state_alone() as state:
            return str(state.revision)


def _is_answered(state: StoreState, run_id: str) -> bool:
    """Whether the store has the response of a run's last turn."""
    return any(response.last_turn for response in state.responses.get(run_id, {}).values())


def _is_done(state: StoreState, experiment_id: str, run: RunKey) -> bool:
    facts = state.facts_of(experiment_id)
    if run not in facts.ended and run not in facts.failures:
        return False
    turns = state.responses.get(run.run_id, {})
    return all(
        ScoreKey(experiment_id, run.run_id, turn, run.profile) in facts.scores for turn in turns
    )
