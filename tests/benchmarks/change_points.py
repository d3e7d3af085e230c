"""How often the tests of a series find a step, and how often one that is not there.

Run: `.venv/bin/python -m tests.benchmarks.change_points [DRAWS]`. Each week asks the
same SCENARIOS, each of them REPEATS times; the tutor ends its answers to three of five with a
question. The overall scores of a week share a shock of SHOCK, and each run deviates by RUN_SPREAD.
Verbosity and exploratory carry both.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean
from typing import Final, NamedTuple

from socratic_bench.domain.aggregates.cell import Tally, millionths
from socratic_bench.domain.aggregates.change_point import change_point
from socratic_bench.domain.aggregates.difference import FAMILY_ERROR, holm, paired_difference
from socratic_bench.domain.aggregates.parts import FigureSums
from socratic_bench.domain.aggregates.run_scores import VectorScores
from socratic_bench.domain.aggregates.statistics import figure_estimate
from socratic_bench.domain.aggregates.trend import mann_kendall
from socratic_bench.scoring.profile import CANONICAL, OVERALL
from socratic_bench.scoring.profiles import known_composition

DRAWS: Final = 1_000
VECTORS: Final = ("verbosity", "exploratory", "interrogative", OVERALL)
COMPOSITION: Final = known_composition(CANONICAL)
SCENARIOS: Final = 15
REPEATS: Final = 3
SHOCK: Final = 0.015
RUN_SPREAD: Final = 0.09
STEP: Final = 0.05
MOST_FALSE: Final = 0.065
LEAST_COVERED: Final = 0.93


class Condition(NamedTuple):
    """A series of weeks with a step; 0.0 is no step."""

    weeks: int
    step: float
    begins: int

    def __str__(self) -> str:
        if not self.step:
            return f"{self.weeks} weeks without a step"
        return f"{self.weeks} weeks, a step of {self.step:.2f} after {self.begins}"


def conditions() -> list[Condition]:
    """Return series without a step, then with one in the middle, then with an early one."""
    return [
        *(Condition(weeks, 0.0, weeks // 2) for weeks in (8, 12, 26)),
        *(Condition(weeks, STEP, weeks // 2) for weeks in (8, 12, 26)),
        *(Condition(weeks, STEP, weeks // 4) for weeks in (12, 26)),
        Condition(26, 0.03, 8),
    ]


def draw(rng: random.Random, condition: Condition) -> list[VectorScores[str]]:
    """Return the scores of each week."""
    levels = [rng.uniform(0.4, 0.6) for _ in range(SCENARIOS)]
    return [
        _week(rng, levels, rng.gauss(0, SHOCK) + condition.step * (week >= condition.begins))
        for week in range(condition.weeks)
    ]


def _week(rng: random.Random, levels: Sequence[float], shift: float) -> VectorScores[str]:
    found: VectorScores[str] = VectorScores()
    for number, level in enumerate(levels):
        sums = {name: Tally() for name in VECTORS}
        for _ in range(REPEATS):
            smooth = min(1.0, max(0.0, level + 1.5 * (shift + rng.gauss(0, RUN_SPREAD))))
            scores = (smooth, smooth, float(number % 5 < 3))
            for name, score in zip(sums, (*scores, fmean(scores)), strict=True):
                sums[name].add(millionths(score))
        found.merge(f"s{number:02}", "student", 1, sums)
    return found


def neighbours_differ(weeks: Sequence[VectorScores[str]], condition: Condition) -> bool:
    """Whether the neighbours around the step differ; without a step, whether any two do."""
    sums = [FigureSums.of(week, OVERALL, COMPOSITION) for week in weeks]
    p_values = [paired_difference(after, before).p_value for before, after in pairwise(sums)]
    corrected = holm(p_values)
    return (corrected[condition.begins - 1] if condition.step else min(corrected)) <= FAMILY_ERROR


def _mean(week: VectorScores[str]) -> float:
    mean = figure_estimate(week, OVERALL, COMPOSITION).mean
    return 0.0 if mean is None else mean


class Found(NamedTuple):
    """Shares of the series of a condition."""

    change_points: float
    trends: float
    neighbours: float
    covered: float
    """Of those with a change point: its interval has the step."""

    width: float
    """The mean number of splits in these intervals."""


def measure(condition: Condition, draws: int) -> Found:
    """Return how often each test finds something."""
    rng = random.Random(repr(condition))
    trends, neighbours, points = 0, 0, []
    for _ in range(draws):
        weeks = draw(rng, condition)
        means = [_mean(week) for week in weeks]
        trends += mann_kendall(means) <= FAMILY_ERROR
        neighbours += neighbours_differ(weeks, condition)
        point = change_point(means)
        if point is not None and point.is_real:
            points.append(point)
    return Found(
        change_points=len(points) / draws,
        trends=trends / draws,
        neighbours=neighbours / draws,
        covered=_mean_of([each.earliest <= condition.begins <= each.latest for each in points]),
        width=_mean_of([each.latest - each.earliest + 1 for each in points]),
    )


def _mean_of(values: Sequence[float]) -> float:
    return fmean(values) if values else math.nan


def main(draws: int = DRAWS) -> None:
    """Print the table. Raises SystemExit for too many false alarms, or too short intervals."""
    bad = 0
    for condition in conditions():
        found = measure(condition, draws)
        line = (
            f"{condition}: change point {found.change_points:.1%}, trend {found.trends:.1%}, "
            f"neighbours {found.neighbours:.1%}"
        )
        if condition.step:
            line += f"; the interval has the step in {found.covered:.1%}, {found.width:.1f} splits"
            bad += found.covered < LEAST_COVERED
        else:
            bad += found.change_points > MOST_FALSE
        print(line, flush=True)
    if bad:
        raise SystemExit(f"{bad} conditions have too many false alarms or too short intervals")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
