"""The constant reply: what a tutor scores that says the same to everybody."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Final, NamedTuple

from socratic_bench.domain.experiment.manifest import Manifest
from socratic_bench.domain.scenario import Scenario
from socratic_bench.ports.stores.experiments import Experiments
from socratic_bench.results.leaderboard.selection import Selection
from socratic_bench.scoring.exchange import EarlierTurn
from socratic_bench.scoring.profile import OVERALL
from socratic_bench.scoring.profiles import known_vectors, needs_grade
from socratic_bench.scoring.score import Score, score

BASELINE_ID: Final = "baseline/constant-reply"
BASELINE_NAME: Final = "constant reply"

CONSTANT_REPLY: Final = (
    "What matters most to everyone involved here, and how would someone else describe this "
    "situation from another viewpoint?"
)
"""The reply to every message, whatever the student says."""


class Baseline(NamedTuple):
    """The means of a constant reply; a figure is None where it applies to no response."""

    all: dict[str, float | None]
    """Over all runs: each vector, and `overall`."""

    dimensions: dict[str, dict[str, float | None]]
    responses: int
    """All of the scenarios, whatever the dimension."""

    def of(self, dimension: str | None) -> Baseline:
        """Return the baseline of one dimension alone; None: of all."""
        if dimension is None:
            return self
        own = self.dimensions.get(dimension, {OVERALL: None})
        return Baseline(own, {dimension: own}, self.responses)


MOST_KEPT: Final = 64
"""The most baselines in memory."""

_kept: dict[tuple[str, str], Baseline] = {}
"""By the name of the conditions, which decide the scenarios, and by the profile."""


async def table_baseline(store: Experiments, selected: Selection) -> Baseline | None:
    """Return the baseline of a table; None for one of different conditions, or of none, for a
    profile that this installation does not have, or that needs a model's grade, and where a model
    plays the student: it says other messages to each tutor.

    It reads a plan once for each conditions, and keeps the result.
    """
    chosen = selected.choice.rows.values()
    counted = {each.conditions_id: each for row in chosen for each in row}
    if len(counted) != 1 or known_vectors(selected.profile) is None:
        return None
    if needs_grade(selected.profile):
        return None
    [(conditions, outline)] = counted.items()
    place = conditions, selected.profile
    if place not in _kept:
        experiment = await store.experiment(outline.experiment_id)
        if experiment is None or experiment.manifest.student is not None:
            return None
        while len(_kept) >= MOST_KEPT:
            del _kept[next(iter(_kept))]
        _kept[place] = await asyncio.to_thread(baseline_of, experiment.manifest, selected.profile)
    return _kept[place].of(selected.filters.dimension)


def baseline_of(manifest: Manifest, profile: str) -> Baseline:
    """Score `CONSTANT_REPLY` as the reply to every message of a manifest's scenarios.

    Raises UnknownProfile, BrokenPlugin.
    """
    runs = [(scenario.dimension, _run(scenario, profile)) for scenario in manifest.scenarios]
    by_dimension: defaultdict[str, list[Run]] = defaultdict(list)
    for dimension, run in runs:
        by_dimension[dimension].append(run)
    return Baseline(
        _means([run for _, run in runs]),
        {dimension: _means(its_runs) for dimension, its_runs in by_dimension.items()},
        sum(len(scenario.student_messages) for scenario in manifest.scenarios),
    )


Run = dict[str, float | None]
"""The mean of a run for each vector, and for `overall`; None where it applies to no turn."""


def _run(scenario: Scenario, profile: str) -> Run:
    scores: list[Score] = []
    earlier: tuple[EarlierTurn, ...] = ()
    for message in scenario.student_messages:
        scores.append(
            score(
                CONSTANT_REPLY,
                dimension=scenario.dimension,
                student_message=message,
                earlier_turns=earlier,
                answer_key=scenario.key,
                profile=profile,
            )
        )
        earlier = (*earlier, EarlierTurn(message, CONSTANT_REPLY))
    names = [OVERALL, *(scores[0].vectors or ())]
    return {name: _mean([each[name] for each in scores]) for name in names}


def _means(runs: list[Run]) -> Run:
    names = runs[0] if runs else (OVERALL,)
    return {name: _mean([run[name] for run in runs]) for name in names}


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
