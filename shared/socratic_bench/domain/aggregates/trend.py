"""Trends: whether a series of scores rises or falls, more than chance would have it.

Each point of a series is one value, so that whatever moves a whole occasion (a server's settings,
another day's load) counts as noise between points. Mann and Kendall's test asks whether later
points tend to be higher (Mann 1945, "Nonparametric Tests Against Trend"; Kendall 1975, "Rank
Correlation Methods"); Sen's slope is the median of the slopes of all pairs (Sen 1968, "Estimates of
the Regression Coefficient Based on Kendall's Tau").
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, combinations
from statistics import NormalDist, median
from typing import Final

from socratic_bench.domain.aggregates.difference import FAMILY_ERROR

FEWEST_POINTS: Final = 5
"""The fewest points of a trend: of four, no order is rarer than 8 %."""


@dataclass(frozen=True, slots=True)
class Trend:
    """The trend of a series."""

    slope: float
    """Sen's, in the units of the values by those of the times."""

    p_value: float
    """Two-sided."""

    @property
    def is_real(self) -> bool:
        """Whether chance alone would seldom (5 %) order the points like this."""
        return self.p_value <= FAMILY_ERROR


def trend(times: Sequence[float], values: Sequence[float]) -> Trend | None:
    """Return the trend of `values`, whose times ascend; None with fewer than FEWEST_POINTS."""
    if len(values) < FEWEST_POINTS:
        return None
    pairs = combinations(zip(times, values, strict=True), 2)
    slopes = [(b - a) / (later - sooner) for (sooner, a), (later, b) in pairs if later > sooner]
    return Trend(median(slopes) if slopes else 0.0, mann_kendall(values))


def mann_kendall(values: Sequence[float]) -> float:
    """Return the two-sided p value of Mann and Kendall's test.

    Without ties it is exact; with ties the normal distribution stands in, with the variance
    corrected for ties and a correction for continuity.
    """
    count = len(values)
    score = sum((b > a) - (b < a) for a, b in combinations(values, 2))
    ties = [tied for tied in Counter(values).values() if tied > 1]
    if not ties:
        return _exact(count, abs(score))
    variance = count * (count - 1) * (2 * count + 5)
    variance -= sum(tied * (tied - 1) * (2 * tied + 5) for tied in ties)
    if variance == 0 or score == 0:
        return 1.0
    return 2 * NormalDist().cdf(-(abs(score) - 1) / math.sqrt(variance / 18))


def _exact(count: int, score: int) -> float:
    """Return the chance that an order of `count` values has a score of this size or a larger one.

    The score is the number of pairs in ascending order less that of pairs in descending order.
    """
    orders = _orders(count)
    pairs = count * (count - 1) // 2
    tail = orders[(pairs - score) // 2]
    return min(1.0, 2 * tail / orders[-1])


@lru_cache(maxsize=8)
def _orders(count: int) -> Sequence[int]:
    """Return the numbers of orders of `count` values with so many descending pairs or fewer.

    Put into an order of one value less, the largest value adds from none to all of them to its
    descending pairs: a number of orders is a sum of neighbours, the difference of two partial sums.
    """
    sums = [1]
    for size in range(2, count + 1):
        longest = len(sums) + size - 1
        orders = (
            sums[min(descending, len(sums) - 1)]
            - (sums[descending - size] if descending >= size else 0)
            for descending in range(longest)
        )
        sums = list(accumulate(orders))
    return sums
