"""The roles `Responses` and `Aggregates` of the store in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from itertools import chain, islice
from typing import Final

from socratic_bench.adapters.stores.memory.leases import settle
from socratic_bench.adapters.stores.memory.state import MemoryRole, StoreState
from socratic_bench.domain.aggregates.cell import Cell, Fold, RunKey, ScoreKey, outranks, score_of
from socratic_bench.domain.leasing import TurnCalls
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import RunFailure
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.ports.stores.aggregates import FailureCount
from socratic_bench.ports.stores.leases import LeaseKey
from socratic_bench.ports.stores.responses import RecordedFailure, TurnKey


class MemoryResponses(MemoryRole):
    """Records responses and failures, and finds unfolded ones."""

    async def record(
        self, responses: Sequence[Response], lease_ids: Sequence[str | None]
    ) -> Sequence[Response]:
        if not responses:
            return []
        async with self._state_alone() as state:
            return [
                _record(state, response, lease_id)
                for response, lease_id in zip(responses, lease_ids, strict=True)
            ]

    async def responses(self, run_ids: Collection[str]) -> Mapping[str, Sequence[Response]]:
        async with self._state_alone() as state:
            return {
                run_id: [turns[turn] for turn in sorted(turns)]
                for run_id in run_ids
                if (turns := state.responses.get(run_id))
            }

    async def unscored_responses(self, experiment_id: str, limit: int) -> Sequence[Response]:
        async with self._state_alone() as state:
            return list(islice(state.unscored(experiment_id), limit))

    async def record_failures(self, failures: Sequence[RecordedFailure]) -> None:
        async with self._state_alone() as state:
            for failed in failures:
                run = failed.failure.run
                if state.is_deleted(run.experiment_id):
                    continue
                recorded = state.facts_to_change(run.experiment_id).recorded
                known = recorded.get(run.run_id)
                if known is None or known.retry < failed.retry:
                    recorded[run.run_id] = failed

    async def recorded_failures(self, run_ids: Collection[str]) -> Mapping[str, RecordedFailure]:
        async with self._state_alone() as state:
            return {
                run_id: facts.recorded[run_id]
                for facts in state.facts.values()
                for run_id in run_ids
                if run_id in facts.recorded
            }

    async def unfolded_failures(self, experiment_id: str, limit: int) -> Sequence[RunFailure]:
        async with self._state_alone() as state:
            facts, profile = state.facts_of(experiment_id), state.profile_of(experiment_id)
            unfolded: list[RunFailure] = []
            for run_id in sorted(facts.recorded):
                failure = facts.recorded[run_id].failure
                folded = facts.failures.get(RunKey(experiment_id, run_id, profile or ""))
                if outranks(failure, None if folded is None else folded.failure):
                    unfolded.append(failure)
            return unfolded[:limit]


def _record(state: StoreState, response: Response, lease_id: str | None) -> Response:
    """Store a response and settle the lease of its call; returns the stored response."""
    run = response.run
    if state.is_deleted(run.experiment_id):
        return response
    turn, charged = TurnKey(run.run_id, response.turn), response.charged_nanodollars
    stored = state.response(turn)
    if lease_id is not None or charged is not None:
        lease = LeaseKey(run.experiment_id, *turn, lease_id or "")
        if not settle(state, lease, charged) and stored is None:
            account = state.account_of(run.experiment_id)
            if response.reused_nanodollars:  # adopted before the experiment is registered
                account = state.accounts.setdefault(run.experiment_id, account)
            account.pay(charged or 0, run.experiment_id)
            account.reused += response.reused_nanodollars
    if stored is not None:
        return stored
    state.facts_to_change(run.experiment_id).calls.setdefault(turn, TurnCalls())
    state.responses.setdefault(run.run_id, {})[response.turn] = response
    return response


PAGE: Final = 500
"""The number of scores or failures in a page."""


class MemoryAggregates(MemoryRole):
    """Folds scores and failures into cells, and reads all three."""

    async def fold(
        self, scores: Sequence[ScoredResponse], failures: Sequence[RunFailure]
    ) -> Sequence[Cell]:
        async with self._state_alone() as state:
            ids = {scored.run.experiment_id for scored in scores}
            ids |= {failure.run.experiment_id for failure in failures}
            folds = {
                id_: _fold_into(state, id_) for id_ in sorted(ids) if not state.is_deleted(id_)
            }
            for scored in scores:
                if (fold := folds.get(scored.run.experiment_id)) is not None:
                    stored = state.facts[scored.run.experiment_id].scores
                    fold.add_score(scored, is_new=score_of(scored) not in stored)
                    stored.setdefault(score_of(scored), _copy(scored))
            for failure in failures:
                if (fold := folds.get(failure.run.experiment_id)) is not None:
                    fold.add_failure(failure)
            for id_, fold in folds.items():
                state.revision += len(fold.changed)
                state.cell_revisions[id_] += len(fold.changed)
            return [cell.copy() for fold in folds.values() for cell in fold.touched]

    async def cells(
        self,
        experiment_ids: Collection[str] | None = None,
        model_id: str | None = None,
        profile: str | None = None,
    ) -> Sequence[Cell]:
        async with self._state_alone() as state:
            ids = state.facts.keys() if experiment_ids is None else set(experiment_ids)
            cells = chain.from_iterable(state.facts_of(id_).cells.values() for id_ in ids)
            found = [
                cell
                for cell in cells
                if cell.responses
                and model_id in {None, cell.key.model_id}
                and profile in {None, cell.key.profile}
            ]
            return [cell.copy() for cell in sorted(found, key=lambda cell: cell.key)]

    async def score_rows(self, experiment_id: str) -> AsyncIterator[Sequence[ScoredResponse]]:
        """Yield pages, each read in its own step, so that a slow reader holds nothing up."""
        async with self._state_alone() as state:
            keys = sorted(state.facts_of(experiment_id).scores)
        for start in range(0, len(keys), PAGE):
            async with self._state_alone() as state:
                scores = state.facts_of(experiment_id).scores
                page = [_copy(scores[key]) for key in keys[start : start + PAGE] if key in scores]
            yield page

    async def failure_rows(self, experiment_id: str) -> AsyncIterator[Sequence[RunFailure]]:
        """Yield pages, as `score_rows` does."""
        async with self._state_alone() as state:
            keys = sorted(state.facts_of(experiment_id).failures)
        for start in range(0, len(keys), PAGE):
            async with self._state_alone() as state:
                failures = state.facts_of(experiment_id).failures
                following = keys[start : start + PAGE]
                page = [failures[key].failure for key in following if key in failures]
            yield page

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


def _copy(scored: ScoredResponse) -> ScoredResponse:
    """Return an equal score with mappings of its own."""
    vectors = None if scored.vectors is None else dict(scored.vectors)
    return scored.model_copy(update={"vectors": vectors, "counts": dict(scored.counts)})


def _fold_into(state: StoreState, experiment_id: str) -> Fold:
    facts = state.facts_to_change(experiment_id)
    return Fold(facts.cells, facts.failures, facts.ended)


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
