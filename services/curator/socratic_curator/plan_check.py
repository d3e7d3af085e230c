"""Refuses facts that no plan holds: whoever may publish could otherwise change a figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.errors import StoreUnreadable
from socratic_bench.events.event_types import ResponseScored, RunFailed
from socratic_bench.ports.stores.experiments import Experiments
from socratic_bench.providers.registry import is_imported
from socratic_bench.scoring.exchange import Status
from socratic_bench.scoring.profile import Profile, combining, overall
from socratic_bench.scoring.profiles import known_profile

MOST_KEPT: Final = 200
"""Experiments whose plans are kept. A plan never changes."""

ROUNDING: Final = 1e-6
"""The most that an overall may differ from that of its vectors: figures count in millionths."""

Fact = ResponseScored | RunFailed


class PlanCheck:
    """Compares facts with the plans of their experiments."""

    def __init__(self, store: Experiments) -> None:
        self._store = store
        self._known: dict[str, Experiment | None] = {}
        """The experiments used last, the newest use last; None: nothing is known to refuse by."""

    async def reasons(self, facts: Sequence[Fact]) -> list[str | None]:
        """Return for each fact why it is refused; None for one that a plan holds."""
        for experiment_id in {fact.data.run.experiment_id for fact in facts}:
            await self._know(experiment_id)
        reasons = [self._reason(fact) for fact in facts]
        while len(self._known) > MOST_KEPT:
            del self._known[next(iter(self._known))]
        return reasons

    async def plan(self, experiment_id: str) -> Experiment | None:
        """Return an experiment as it was planned; None for a deleted or unreadable one."""
        await self._know(experiment_id)
        return self._known.get(experiment_id)

    async def _know(self, experiment_id: str) -> None:
        if experiment_id in self._known:
            self._known[experiment_id] = self._known.pop(experiment_id)
            return
        try:
            experiment = await self._store.experiment(experiment_id)
        except StoreUnreadable:
            # A newer version planned it, and folds by its own rules.
            self._known[experiment_id] = None
            return
        if experiment is not None:
            self._known[experiment_id] = experiment
        elif await self._is_deleted(experiment_id):
            self._known[experiment_id] = None  # the fold skips its facts

    async def _is_deleted(self, experiment_id: str) -> bool:
        states = await self._store.states([experiment_id])
        return states.get(experiment_id) is ExperimentState.DELETED

    def _reason(self, fact: Fact) -> str | None:
        run, turn, profile = fact.data.run, fact.data.turn, fact.data.profile
        if run.experiment_id not in self._known:
            return f"not in the plan: there is no experiment {run.experiment_id!r}"
        experiment = self._known[run.experiment_id]
        if experiment is None or not experiment.understood:
            return None
        if outside := experiment.outside_plan(run, turn):
            return outside
        measured = known_profile(profile)
        if measured is None and profile != experiment.manifest.profile:
            return f"not in the plan: nothing here scores by the profile {profile!r}"
        return None if isinstance(fact, RunFailed) else _of_score(fact.data, experiment, measured)


def _of_score(
    scored: ScoredResponse, experiment: Experiment, profile: Profile | None
) -> str | None:
    turn, turns = scored.turn, experiment.manifest.scenarios_by_id[scored.run.scenario_id].turns
    # A conversation that came with a file ends when it ended there.
    may_end = scored.last_turn and is_imported(scored.run.model_id)
    if scored.last_turn != (turn == turns) and not may_end:
        said = "the last" if scored.last_turn else "followed by another"
        return f"not in the plan: turn {turn} of {turns} as {said}"
    return _contradiction(scored, profile)


def _contradiction(scored: ScoredResponse, profile: Profile | None) -> str | None:
    """Return why a score cannot be that of its vectors; None: it can, or nobody knows."""
    if scored.overall is not None and scored.status not in (Status.OK, Status.TRUNCATED):
        return f"a response with the status {scored.status} has no score"
    if scored.vectors is None:
        return None if scored.overall is None else "a score has no vectors"
    if profile is None:
        return None
    if scored.vectors.keys() != set(profile.vectors):
        return f"its vectors are not those of {profile.name}"
    values = tuple(scored.vectors[name] for name in profile.vectors)
    combined = combining(profile)
    if combined is not None:
        expected = combined.combine(values, scored.run.dimension)
    else:
        weights = profile.weights.of(scored.run.dimension, profile.vectors)
        expected = overall(values, weights)
    if expected is None or scored.overall is None:
        differs = expected is not scored.overall
    else:
        differs = abs(expected - scored.overall) > ROUNDING
    return f"overall is {scored.overall}, its vectors give {expected}" if differs else None
