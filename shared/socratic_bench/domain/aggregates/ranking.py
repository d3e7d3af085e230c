"""Ranks with their uncertainty: which differences between models are real, and which may be chance.

Two models answer the same scenarios, so that their difference is a paired one: what is hard for
both cancels out (Miller 2024, "Adding Error Bars to Evals", section 4.2). Each scenario gives one
difference of means, and Student's t tests their mean. Every pair of a table is tested; Holm's
correction (Holm 1979, "A Simple Sequentially Rejective Multiple Test Procedure") holds the
probability of a single false difference in the whole table to 5 %.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist
from typing import Final, TypeVar

from socratic_bench.domain.aggregates.run_scores import RunScores
from socratic_bench.domain.aggregates.statistics import (
    CONFIDENCE,
    FEWEST_CLUSTERS,
    student_t_distribution,
    student_t_quantile,
)

Scenario = TypeVar("Scenario", bound=Hashable)

FAMILY_ERROR: Final = 0.05
"""The greatest probability of one or more false differences in a table."""

POWER: Final = 0.8
"""The probability with which a test of enough scenarios shows a real difference."""

NO_SPREAD: Final = 1e-9
"""Differences that vary less than this vary by rounding alone."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How much more one model scores than another, over the scenarios that both answered."""

    scenarios: int
    mean: float | None
    """-1.0 to 1.0, each scenario of the same weight; None without a common scenario."""

    interval: tuple[float, float] | None
    """95 %; None with fewer than FEWEST_CLUSTERS scenarios."""

    p_value: float
    """Two-sided and uncorrected; 1 with fewer than FEWEST_CLUSTERS scenarios."""

    error: float | None = None
    """The standard error of the mean; None with fewer than FEWEST_CLUSTERS scenarios."""

    @property
    def is_real(self) -> bool:
        """Whether chance alone would seldom (5 %) make a difference of this size."""
        return self.p_value <= FAMILY_ERROR and bool(self.mean)


def paired_difference(
    one: Mapping[Scenario, RunScores], other: Mapping[Scenario, RunScores]
) -> Difference:
    """Return how much more `one` scores than `other`, whose scores come by scenario."""
    return difference_of_means(scenario_means(one), scenario_means(other))


def scenarios_to_tell(difference: Difference) -> int | None:
    """Return how many scenarios like these would show a difference of this size; None if unknown.

    n * ((z(0.975) + z(POWER)) * error / mean)^2 (Miller 2024, section 5), and no fewer than
    FEWEST_CLUSTERS.
    """
    if not difference.mean or not difference.error:
        return None
    reach = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) + NormalDist().inv_cdf(POWER)
    needed = difference.scenarios * (reach * difference.error / difference.mean) ** 2
    return max(FEWEST_CLUSTERS, math.ceil(needed))


def rank_intervals(models: Sequence[Mapping[Scenario, RunScores]]) -> list[tuple[int, int]]:
    """Return the best and the worst rank that each model may have; `models` come best first.

    A model ranks behind those that score really more and before those that score really less.
    Models whose difference may be chance share ranks.
    """
    means = [scenario_means(model) for model in models]
    pairs = list(combinations(range(len(models)), 2))
    differences = [difference_of_means(means[one], means[other]) for one, other in pairs]
    better = [0] * len(models)
    worse = [0] * len(models)
    adjusted = holm([each.p_value for each in differences])
    for (one, other), difference, p_value in zip(pairs, differences, adjusted, strict=True):
        if p_value <= FAMILY_ERROR and difference.mean:
            first, second = (one, other) if difference.mean > 0 else (other, one)
            better[second] += 1
            worse[first] += 1
    return [
        (min(rank, 1 + better[rank - 1]), max(rank, len(models) - worse[rank - 1]))
        for rank in range(1, len(models) + 1)
    ]


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p values corrected by Holm's method for their number, in the given order."""
    adjusted = [1.0] * len(p_values)
    least = 0.0
    for step, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        least = max(least, min(1.0, p_values[place] * (len(p_values) - step)))
        adjusted[place] = least
    return adjusted


def scenario_means(scores: Mapping[Scenario, RunScores]) -> dict[Scenario, float]:
    """Return the mean of each scenario that has a score."""
    found = ((scenario, each.mean) for scenario, each in scores.items())
    return {scenario: score for scenario, score in found if score is not None}


def difference_of_means(
    one: Mapping[Scenario, float], other: Mapping[Scenario, float]
) -> Difference:
    """Return how much more `one` scores than `other`, whose means come by scenario."""
    each = [one[scenario] - other[scenario] for scenario in one.keys() & other.keys()]
    count = len(each)
    if count == 0:
        return Difference(0, None, None, 1.0)
    centre = math.fsum(each) / count
    if count < FEWEST_CLUSTERS:
        return Difference(count, centre, None, 1.0)
    error = math.sqrt(math.fsum((value - centre) ** 2 for value in each) / (count - 1) / count)
    reach = student_t_quantile((1 + CONFIDENCE) / 2, count - 1) * error
    interval = (max(-1.0, centre - reach), min(1.0, centre + reach))
    return Difference(count, centre, interval, _p_value(centre, error, count), error)


def _p_value(centre: float, error: float, count: int) -> float:
    if abs(centre) < NO_SPREAD:
        return 1.0
    if error < NO_SPREAD:
        # t has no spread to go by: what remains is the sign test of equal signs.
        return float(2.0 ** (1 - count))
    return 2.0 * (1.0 - student_t_distribution(abs(centre) / error, count - 1))
