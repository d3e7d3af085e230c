"""The parts of the variance of two models' scores: what more scenarios buy, and what more repeats.

The score of model m in repeat r of scenario s is taken as

    mean of m + scenario s + (m, s) + repeat r

with independent parts: `scenario` is what all models find hard alike, `rest` the part in which the
models differ from scenario to scenario, and `repeat` the part that changes from one repeat to the
next. A paired difference loses the first part. Of S scenarios with R repeats its variance is

    (2 * rest + 2 * repeat / R) / S

so that more repeats lessen the last part alone, and more scenarios both.

The parts come from the method of moments, with equal weight for each scenario, which holds for
unequal numbers of repeats too (Searle, Casella and McCulloch 1992, "Variance Components", sections
4.3 and 5.4; with equal numbers it is the analysis of variance). `repeat` is the pooled variance
within scenarios. The variance of the scenarios' differences has 2 * rest and the repeats' share;
the covariance of the models' means over scenarios is `scenario`. A negative estimate counts as 0.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, covariance, fmean, harmonic_mean, variance
from typing import Final, TypeVar

from socratic_bench.domain.aggregates.difference import POWER, Difference
from socratic_bench.domain.aggregates.run_scores import RunScores
from socratic_bench.domain.aggregates.statistics import (
    CONFIDENCE,
    FEWEST_CLUSTERS,
    student_t_quantile,
)

Scenario = TypeVar("Scenario", bound=Hashable)

_NO_PART: Final = 1e-12
"""A variance below this is that of rounding."""


@dataclass(frozen=True, slots=True)
class VarianceSplit:
    """The parts of the variance of a score, on the scale from 0 to 1 squared."""

    scenario: float
    """What both models find hard or easy alike. A paired difference is free of it."""

    rest: float
    """How the models differ from scenario to scenario. Without repeats it holds their part too."""

    repeat: float | None
    """How a model's runs of one scenario differ; None where no scenario has two scored runs.

    Of runs with several turns it is the most that it can be, as `RunScores.repeat_variance` says.
    """

    repeats: float
    """The runs of a model in a scenario, as a harmonic mean."""

    def error(self, scenarios: int, repeats: float) -> float:
        """Return the standard error of a paired difference of so many scenarios and repeats."""
        return math.sqrt((2 * self.rest + 2 * (self.repeat or 0.0) / repeats) / scenarios)


def split_variance(
    one: Mapping[Scenario, RunScores], other: Mapping[Scenario, RunScores]
) -> VarianceSplit | None:
    """Split the variance of two models' scores; None with fewer than FEWEST_CLUSTERS scenarios."""
    pairs = [
        (first, second)
        for scenario, first in one.items()
        if (second := other.get(scenario)) is not None and first.runs and second.runs
    ]
    if len(pairs) < FEWEST_CLUSTERS:
        return None
    means = [[scores.mean or 0.0 for scores in model] for model in zip(*pairs, strict=True)]
    within = [_within(model) for model in zip(*pairs, strict=True)]
    known = [each for each in within if each is not None]
    noise = fmean(
        sum((spread or 0.0) / scores.runs for spread, scores in zip(within, pair, strict=True))
        for pair in pairs
    )
    apart = variance(first - second for first, second in zip(*means, strict=True))
    return VarianceSplit(
        scenario=_part(covariance(*means)),
        rest=_part((apart - noise) / 2),
        repeat=_part(fmean(known)) if len(known) == len(within) else None,
        repeats=harmonic_mean([scores.runs for pair in pairs for scores in pair]),
    )


def repeats_to_tell(difference: Difference, split: VarianceSplit) -> int | None:
    """Return how many repeats in the present scenarios would show a difference of this size.

    None without repeats to go by, and where no number suffices: `rest` alone hides the difference,
    or the room for what other scenarios may show. The power is that of `scenarios_to_tell`, in a
    test of normal quantiles.
    """
    mean, spread = difference.mean, difference.spread
    if not mean or spread is None or split.repeat is None:
        return None
    critical = student_t_quantile((1 + CONFIDENCE) / 2, difference.scenarios - 1)
    if critical * spread.errors(is_exact=True).towards_zero(mean) > abs(mean):
        return None
    reach = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) + NormalDist().inv_cdf(POWER)
    left = difference.scenarios * (mean / reach) ** 2 - 2 * split.rest
    return max(1, math.ceil(2 * split.repeat / left)) if left > 0 else None


def _within(scenarios: Sequence[RunScores]) -> float | None:
    """Return the variance of a model's repeats, pooled over scenarios; None without repeats."""
    found = [each for scores in scenarios if (each := scores.repeat_variance()) and each[1] > 0]
    degrees = sum(freedom for _, freedom in found)
    return math.fsum(spread * freedom for spread, freedom in found) / degrees if degrees else None


def _part(estimate: float) -> float:
    return estimate if estimate > _NO_PART else 0.0
