"""Agreement of two measurements of the same things, which have the same scale."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Final, NamedTuple

NORMAL_95: Final = 1.96
"""The quantile of the normal distribution with 95 % between it and its negative."""


class LimitsOfAgreement(NamedTuple):
    """The mean of the differences, first less second, and the limits that 95 % lie between."""

    mean: float
    deviation: float
    """The standard deviation of the differences, with n - 1."""

    low: float
    high: float


def limits_of_agreement(one: Sequence[float], other: Sequence[float]) -> LimitsOfAgreement | None:
    """Return the 95 % limits of agreement, mean ± 1.96 standard deviations (Bland and Altman 1986).

    None with fewer than two pairs.
    """
    n = len(one)
    if n < 2:
        return None
    differences = [a - b for a, b in zip(one, other, strict=True)]
    mean = sum(differences) / n
    deviation = sqrt(sum((each - mean) ** 2 for each in differences) / (n - 1))
    return LimitsOfAgreement(
        mean, deviation, mean - NORMAL_95 * deviation, mean + NORMAL_95 * deviation
    )


def concordance(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Return Lin's concordance correlation, -1.0 to 1.0 (Lin 1989).

    It is 1.0 only where both measurements are equal: unlike Pearson's correlation it falls with a
    shift or another scale. The variances are those of the sample, divided by n. None without pairs,
    and where both sides have one and the same single value.
    """
    n = len(one)
    if n == 0:
        return None
    first, second = sum(one) / n, sum(other) / n
    covariance = sum((a - first) * (b - second) for a, b in zip(one, other, strict=True)) / n
    variances = (sum((a - first) ** 2 for a in one) + sum((b - second) ** 2 for b in other)) / n
    spread = variances + (first - second) ** 2
    return 2 * covariance / spread if spread else None
