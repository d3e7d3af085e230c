"""The role `Responses` of the store in memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import islice

from socratic_bench.adapters.stores.memory.ledger import commit, settle
from socratic_bench.adapters.stores.memory.role import MemoryRole
from socratic_bench.adapters.stores.memory.state import StoreState, TurnCalls
from socratic_bench.domain.aggregates.facts import RunKey, outranks
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import RunFailure
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
                run_id: [_copy(turns[turn]) for turn in sorted(turns)]
                for run_id in run_ids
                if (turns := state.responses.get(run_id))
            }

    async def unscored_responses(self, experiment_id: str, limit: int) -> Sequence[Response]:
        async with self._state_alone() as state:
            return [_copy(each) for each in islice(state.unscored(experiment_id), limit)]

    async def record_failures(self, failures: Sequence[RecordedFailure]) -> None:
        async with self._state_alone() as state:
            for failed in failures:
                run = failed.failure.run
                if state.is_deleted(run.experiment_id):
                    continue
                recorded = state.facts_to_change(run.experiment_id).recorded
                known = recorded.get(run.run_id)
                if known is None or known.retry < failed.retry:
                    recorded[run.run_id] = _copy_of_recorded(failed)

    async def recorded_failures(self, run_ids: Collection[str]) -> Mapping[str, RecordedFailure]:
        async with self._state_alone() as state:
            return {
                run_id: _copy_of_recorded(facts.recorded[run_id])
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
                    unfolded.append(failure.model_copy(deep=True))
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
            commit(state, run.experiment_id, charged or 0)
    if stored is not None:
        return _copy(stored)
    state.facts_to_change(run.experiment_id).calls.setdefault(turn, TurnCalls())
    state.responses.setdefault(run.run_id, {})[response.turn] = _copy(response)
    return response


def _copy(response: Response) -> Response:
    return response.model_copy(deep=True)


def _copy_of_recorded(recorded: RecordedFailure) -> RecordedFailure:
    return recorded._replace(failure=recorded.failure.model_copy(deep=True))
