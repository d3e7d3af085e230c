"""The points of a series on both sides of a known date, and the least step that they would show.

A point is one value, whatever moves its whole occasion included. Two sides of a and b points with
the means m_A and m_B differ by d = m_B - m_A with the standard error

    e = s * sqrt(1 / a + 1 / b)

where s is the spread of points within both sides, pooled with a + b - 2 degrees of freedom (Student
1908, "The Probable Error of a Mean"). It supposes that points of both sides spread alike: a side
of two points has too few for a spread of its own.

The minimal detectable change of a series is the step that this test finds in 80 % of series, if the
date parts it in halves a and b:

    (t(97.5 %) + t(80 %)) * s * sqrt(1 / a + 1 / b)

(Bloom 1995, "Minimum Detectable Effects", with both quantiles of t with a + b - 2 degrees of
freedom). Its s comes from neighbouring points,

    s^2 = sum (y_i+1 - y_i)^2 / (2 (n - 1))

so that a step or a trend in the series hardly enlarges it (von Neumann 1941, "Distribution of the
Ratio of the Mean Square Successive Difference to the Variance").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Final

from socratic_bench.domain.aggregates.change_point import FEWEST_A_SIDE
from socratic_bench.domain.aggregates.difference import FAMILY_ERROR, NO_SPREAD, POWER
from socratic_bench.domain.aggregates.statistics import student_t_distribution, student_t_quantile

FEWEST_POINTS: Final = 2 * FEWEST_A_SIDE
"""The fewest points of a series with a minimal detectable change."""

_TWO_SIDED: Final = 1 - FAMILY_ERROR / 2


@dataclass(frozen=True, slots=True)
class LevelDifference:
    """The mean of the points after a date less that of the points before."""

    difference: float
    interval: tuple[float, float] | None
    """95 %; None where the points of each side are all equal."""

    p_value: float
    """Two-sided."""

    @property
    def is_real(self) -> bool:
        """Whether the p value is at most 5 %."""
        return self.p_value <= FAMILY_ERROR


def level_difference(before: Sequence[float], after: Sequence[float]) -> LevelDifference | None:
    """Return the difference of two sides; None where one has fewer than FEWEST_A_SIDE points."""
    if min(len(before), len(after)) < FEWEST_A_SIDE:
        return None
    degrees = len(before) + len(after) - 2
    squares = sum((each - fmean(side)) ** 2 for side in (before, after) for each in side)
    error = math.sqrt(squares / degrees) * _widening(len(before), len(after))
    difference = fmean(after) - fmean(before)
    if error <= NO_SPREAD:
        # t has no spread to go by: what remains is the share of orders that part equal points.
        orders = math.comb(len(before) + len(after), len(before))
        return LevelDifference(difference, None, 2 / orders if difference else 1.0)
    reach = student_t_quantile(_TWO_SIDED, degrees) * error
    return LevelDifference(
        difference=difference,
        interval=(difference - reach, difference + reach),
        p_value=2 * (1 - student_t_distribution(abs(difference) / error, degrees)),
    )


def minimal_detectable_change(values: Sequence[float]) -> float | None:
    """Return the least step that a test of both halves finds with 80 % power, at 5 %.

    `values` are in the order of time. None with fewer than FEWEST_POINTS, or where all are equal.
    """
    count = len(values)
    if count < FEWEST_POINTS:
        return None
    squares = sum((later - sooner) ** 2 for sooner, later in pairwise(values))
    spread = math.sqrt(squares / (2 * (count - 1)))
    if spread <= NO_SPREAD:
        return None
    quantiles = (student_t_quantile(each, count - 2) for each in (_TWO_SIDED, POWER))
    return sum(quantiles) * spread * _widening(count // 2, count - count // 2)


def _widening(before: int, after: int) -> float:
    return math.sqrt(1 / before + 1 / after)
