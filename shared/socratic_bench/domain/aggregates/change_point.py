"""Change points: where a series of scores moved to another level, when at most, and how far.

Each point of a series is one value, as in `trend`. Let the points 1 to k stand before a split, n
points in all, S_k their sum and S the sum of all. The statistic of a split is the difference of the
means of both sides in units of its own standard error, but for a factor that all orders share:

    |n * S_k - k * S| / sqrt(k * (n - k))

The change point is the split with the largest one, and the largest one is the statistic of the
series. Without a change, all orders of the points are equally likely. The p value is the share of
PERMUTATIONS drawn orders whose statistic is as large, the order of the series counted with them:

    p = (1 + count) / (1 + PERMUTATIONS)

(Pettitt 1979, "A Non-Parametric Approach to the Change-Point Problem", for permutations; Phipson
and Smyth 2010, "Permutation P-values Should Never Be Zero".) Scores count in whole millionths and
the orders come from a fixed seed, so a series has the same p value on every machine.

The date's interval has each split whose squares within both sides, R_k, explain the series nearly
as well as the least ones, R:

    n * log(R_k / R) <= -2 * log(1 - sqrt(0.95)) = 7.35

(Hansen 2000, "Sample Splitting and Threshold Estimation"; Eo and Morley 2015,
"Likelihood-Ratio-Based Confidence Sets for the Timing of Structural Breaks".)
`tests/benchmarks/change_points.py` measures how often it covers.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from operator import itemgetter, mul
from typing import Final

from socratic_bench.domain.aggregates.cell import MILLIONTHS
from socratic_bench.domain.aggregates.difference import FAMILY_ERROR
from socratic_bench.domain.aggregates.statistics import CONFIDENCE

FEWEST_A_SIDE: Final = 2
"""The fewest points on each side of a change: one point is no level."""

FEWEST_POINTS: Final = 8
"""The fewest points of a series with a change point: of seven, no order is rarer than 5 %."""

PERMUTATIONS: Final = 1_000
_SEED: Final = 20_260_302

_LEAST_LIKELY: Final = -2 * math.log(1 - math.sqrt(CONFIDENCE))


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """The split of a series that parts its points best."""

    before: int
    """The points before it."""

    difference: float
    """The mean of the points after less that of those before. It tends to be too large where the
    change is small: it is that of the best of all splits."""

    p_value: float
    """Of a series without a change."""

    earliest: int
    latest: int
    """The fewest and the most points before it, by a 95 % interval."""

    @property
    def is_real(self) -> bool:
        """Whether chance alone would seldom (5 %) part the points like this."""
        return self.p_value <= FAMILY_ERROR


def change_point(values: Sequence[float]) -> ChangePoint | None:
    """Return the change point of scores in the order of time; None with fewer than FEWEST_POINTS.

    It is computed even where chance explains it: `is_real` tells.
    """
    if len(values) < FEWEST_POINTS:
        return None
    return _change_point(tuple(round(each * MILLIONTHS) for each in values))


@lru_cache(maxsize=1024)
def _change_point(values: tuple[int, ...]) -> ChangePoint:
    count, total = len(values), sum(values)
    splits = range(FEWEST_A_SIDE, count - FEWEST_A_SIDE + 1)
    centred = tuple(count * each - total for each in values)
    weights = [1 / math.sqrt(split * (count - split)) for split in splits]
    statistics = _statistics(centred, weights)
    largest = max(statistics)
    count_as_large = sum(
        max(_statistics(order(centred), weights)) >= largest for order in _orders(count)
    )
    before = splits[statistics.index(largest)]
    first = sum(values[:before]) / before
    second = (total - sum(values[:before])) / (count - before)
    likely = _likely(values, splits)
    return ChangePoint(
        before=before,
        difference=(second - first) / MILLIONTHS,
        p_value=(1 + count_as_large) / (1 + PERMUTATIONS),
        earliest=min(before, *likely),
        latest=max(before, *likely),
    )


def _statistics(centred: Sequence[int], weights: Sequence[float]) -> list[float]:
    """Return the statistic of each split; `centred` sums to 0."""
    sums = list(accumulate(centred))[FEWEST_A_SIDE - 1 : -FEWEST_A_SIDE]
    return list(map(mul, map(abs, sums), weights))


def _likely(values: Sequence[int], splits: Sequence[int]) -> list[int]:
    """Return the splits of the date's interval."""
    count, total = len(values), sum(values)
    squares = count * sum(each * each for each in values) - total * total
    sums = list(accumulate(values))
    within = [
        squares - (count * sums[split - 1] - split * total) ** 2 / (split * (count - split))
        for split in splits
    ]
    most = max(0.0, min(within)) * math.exp(_LEAST_LIKELY / count)
    return [split for split, each in zip(splits, within, strict=True) if each <= most]


@lru_cache(maxsize=8)
def _orders(count: int) -> Sequence[itemgetter[tuple[int, ...]]]:
    """Return PERMUTATIONS orders of `count` values, the same in each process.

    Only `random()` draws the same numbers in each version of Python, so the orders are made by it.
    """
    source = random.Random(_SEED)  # noqa: S311 - statistics, not secrets
    return [
        itemgetter(*sorted(range(count), key=[source.random() for _ in range(count)].__getitem__))
        for _ in range(PERMUTATIONS)
    ]
