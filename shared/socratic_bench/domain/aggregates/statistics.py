"""Means and their uncertainty, as folds of cells.

A run counts once, however many turns it has: `run_scores` gives the mean of each. Runs of one
scenario resemble each other: they are one cluster, and the standard error of a mean over runs is
the cluster-robust one. With clusters c of n_c runs and sum S_c, N runs in all, mean m and G
clusters:

    variance = G / (G - 1) * sum_c (S_c - n_c * m)^2 / N^2

(Liang and Zeger 1986, with the usual small-sample factor; Miller 2024, "Adding Error Bars to
Evals", section 2.2, for evaluations.)

Scores end at 0 and 1, and near an end few clusters carry the spread: m +- t * error covers too
seldom there. The 95 % interval is Wilson's (1927) for the number of independent yes-or-no answers
that would have this variance,

    n = m * (1 - m) / variance

(Korn and Graubard 1998, "Confidence Intervals for Proportions With Small Expected Number of
Positive Counts Estimated From Survey Data"), with Student's t for its quantile. The variance is
itself an estimate, and a worse one the heavier the tails of the clusters' means: for an excess
kurtosis k its spread is that of

    degrees of freedom = 2 / (2 / (G - 1) + k / G)

(Satterthwaite 1946, with the variance of a sample variance). k is that of yes-or-no answers,
1 / (m * (1 - m)) - 6, times G / n, the share of their variance that the means of clusters have.
`tests/benchmarks/statistics/interval_coverage.py` measures how often the interval covers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from socratic_bench.domain.aggregates.cell import MILLIONTHS
from socratic_bench.domain.aggregates.run_scores import RunScores

CONFIDENCE: Final = 0.95

FEWEST_CLUSTERS: Final = 5
"""The fewest scenarios that an interval is made from: with fewer, it covers too seldom."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over runs with its uncertainty; None where the runs are too few."""

    n: int
    """Scored responses."""

    mean: float | None
    """Over runs, 0.0 to 1.0."""

    interval: tuple[float, float] | None
    """95 %, clustered by scenario; None with fewer than FEWEST_CLUSTERS scenarios."""

    clusters: int


@dataclass(frozen=True, slots=True)
class BoundedInterval:
    """A 95 % interval of a mean on the scale from 0 to 1, with the figures that lead to it."""

    answers: float | None
    """The independent yes-or-no answers that would have this variance; None without variance."""

    kurtosis: float | None
    """The excess kurtosis of the clusters' means, at least 0; None where no formula asks for it."""

    degrees: float | None
    """The degrees of freedom of Student's t; None without variance."""

    quantile: float | None
    ends: tuple[float, float]


@dataclass(frozen=True, slots=True)
class ClusteredMean:
    """A mean over runs with its clusters, and the interval that they give."""

    runs: int
    mean: float
    residuals: tuple[float, ...]
    """Of each cluster: its sum, less its runs times the mean."""

    squares: float
    """The sum of the residuals' squares."""

    variance: float | None
    """None with fewer than FEWEST_CLUSTERS clusters, as the interval."""

    interval: BoundedInterval | None


def clustered_estimate(clusters: Sequence[RunScores]) -> Estimate:
    """Return the mean over all runs, with an interval in which each element is one cluster.

    Each holds one scenario's scores; empty ones do not count.
    """
    sums = _ExactSums(clusters)
    if sums.runs == 0:
        return Estimate(0, None, None, 0)
    scored = sum(scores.scores for scores in sums.clusters)
    interval = sums.interval()
    ends = None if interval is None else interval.ends
    return Estimate(scored, sums.mean, ends, len(sums.clusters))


def clustered_mean(clusters: Sequence[RunScores]) -> ClusteredMean | None:
    """Return the figures behind `clustered_estimate`; None without a score."""
    sums = _ExactSums(clusters)
    if sums.runs == 0:
        return None
    interval = sums.interval()
    return ClusteredMean(
        runs=sums.runs,
        mean=sums.mean,
        residuals=tuple(each / sums.runs / sums.scale / MILLIONTHS for each in sums.residuals()),
        squares=sums.squares() / (sums.runs**2 * sums.scale**2) / MILLIONTHS**2,
        variance=None if interval is None else sums.variance(),
        interval=interval,
    )


class _ExactSums:
    """The sums of the clusters that have scores, in whole numbers: the residuals are exact."""

    def __init__(self, clusters: Sequence[RunScores]) -> None:
        self.clusters: list[RunScores] = []
        self._runs_of: list[int] = []
        for scores in clusters:
            if own_runs := scores.runs:
                self.clusters.append(scores)
                self._runs_of.append(own_runs)
        self.runs = sum(self._runs_of)
        each = [scores.total() for scores in self.clusters]
        self.scale = math.lcm(*(scale for _, scale in each))
        self._totals = [total * (self.scale // scale) for total, scale in each]
        """The sum over each cluster's runs: in millionths, times the scale."""

        self._total = sum(self._totals)

    @property
    def mean(self) -> float:
        """Over the runs, of which there is one at least."""
        return self._total / (self.runs * self.scale) / MILLIONTHS

    def residuals(self) -> list[int]:
        """Return (S_c - n_c * mean) * runs of each cluster, which is a whole number."""
        return [
            own * self.runs - own_runs * self._total
            for own, own_runs in zip(self._totals, self._runs_of, strict=True)
        ]

    def squares(self) -> int:
        """Return the sum of the squares of the residuals."""
        return sum(each**2 for each in self.residuals())

    def variance(self) -> float:
        """Return the variance of the mean over runs, on the scale from 0 to 1."""
        groups, scale = len(self.clusters), self.runs**4 * self.scale**2
        return groups / (groups - 1) * (self.squares() / scale) / MILLIONTHS**2

    def interval(self) -> BoundedInterval | None:
        """Return the interval of the mean; None with fewer than FEWEST_CLUSTERS clusters."""
        if len(self.clusters) < FEWEST_CLUSTERS:
            return None
        return _bounded_interval(self.mean, self.variance(), len(self.clusters))


def _bounded_interval(centre: float, variance: float, groups: int) -> BoundedInterval:
    """Return the 95 % interval of a mean on the scale from 0 to 1, by the module's formulas."""
    spread = centre * (1 - centre)
    if spread == 0:
        # Scenarios that all score 0, or all 1, say no more than one answer each.
        quantile = _quantile(groups - 1)
        ends = wilson_interval(centre, groups, quantile)
        return BoundedInterval(groups, None, groups - 1, quantile, ends)
    if variance == 0:
        return BoundedInterval(None, None, None, None, (centre, centre))
    likeness = min(1.0, groups * variance / spread)
    kurtosis = max(0.0, 1 / spread - 6) * likeness
    degrees = 2 / (2 / (groups - 1) + kurtosis / groups)
    answers, quantile = spread / variance, _quantile(degrees)
    ends = wilson_interval(centre, answers, quantile)
    return BoundedInterval(answers, kurtosis, degrees, quantile, ends)


def wilson_interval(centre: float, answers: float, quantile: float) -> tuple[float, float]:
    """Return Wilson's interval of a share `centre` of `answers` independent answers."""
    weight = quantile**2 / answers
    middle = (centre + weight / 2) / (1 + weight)
    reach = math.sqrt(weight * centre * (1 - centre) + weight**2 / 4) / (1 + weight)
    low, high = max(0.0, middle - reach), min(1.0, middle + reach)
    # Rounding aside, both hold already.
    return min(low, centre), max(high, centre)


def _quantile(degrees: float) -> float:
    """Return the two-sided 95 % quantile of Student's t for two or more degrees of freedom.

    Between whole degrees it is interpolated; below two it is that of two.
    """
    whole = max(2, math.floor(degrees))
    below, above = (student_t_quantile((1 + CONFIDENCE) / 2, each) for each in (whole, whole + 1))
    return below + (above - below) * max(0.0, degrees - whole)


@lru_cache(maxsize=4096)
def student_t_quantile(probability: float, degrees: int) -> float:
    """Return the `probability` quantile of Student's t with `degrees` of freedom.

    Bisects the distribution function. Raises ValueError for a probability outside 0.5 to 1 or
    fewer than one degree of freedom.
    """
    if not 0.5 <= probability < 1.0 or degrees < 1:
        raise ValueError(f"no such quantile: probability {probability}, degrees {degrees}")
    low, high = 0.0, 1.0
    while student_t_distribution(high, degrees) < probability:
        high *= 2.0
    while high - low > 1e-12 * max(1.0, high):
        middle = (low + high) / 2.0
        if student_t_distribution(middle, degrees) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2.0


def student_t_distribution(value: float, degrees: int) -> float:
    """Return the probability that Student's t with `degrees` of freedom is at most `value` >= 0.

    The finite trigonometric series for whole degrees of freedom (Abramowitz and Stegun 26.7.3 and
    26.7.4): `A(t | v) = P(|T| <= t)`, so that the distribution function is (1 + A) / 2.
    """
    angle = math.atan(value / math.sqrt(degrees))
    cosine_squared = math.cos(angle) ** 2
    term = partial = 1.0 if degrees % 2 == 0 else math.cos(angle)
    for step in range(2 if degrees % 2 == 0 else 3, degrees, 2):
        term *= cosine_squared * (step - 1) / step
        partial += term
    if degrees % 2 == 0:
        central = math.sin(angle) * partial
    elif degrees == 1:
        central = 2.0 * angle / math.pi
    else:
        central = 2.0 / math.pi * (angle + math.sin(angle) * partial)
    return (1.0 + central) / 2.0
