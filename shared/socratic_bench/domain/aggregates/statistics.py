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


def clustered_estimate(clusters: Sequence[RunScores]) -> Estimate:
    """Return the mean over all runs, with an interval in which each element is one cluster.

    Each holds one scenario's scores; empty ones do not count.
    """
    filled, runs_of = [], []
    for scores in clusters:
        if own_runs := scores.runs:
            filled.append(scores)
            runs_of.append(own_runs)
    runs = sum(runs_of)
    if runs == 0:
        return Estimate(0, None, None, 0)
    totals, scale = _common_totals(filled)
    total = sum(totals)
    centre = total / (runs * scale) / MILLIONTHS
    groups = len(filled)
    scored = sum(scores.scores for scores in filled)
    if groups < FEWEST_CLUSTERS:
        return Estimate(scored, centre, None, groups)
    # (S_c - n_c * total / runs) * runs is a whole number: the residuals are summed exactly.
    squares = sum(
        (own * runs - own_runs * total) ** 2 for own, own_runs in zip(totals, runs_of, strict=True)
    )
    variance = groups / (groups - 1) * (squares / (runs**4 * scale**2)) / MILLIONTHS**2
    return Estimate(scored, centre, _bounded_interval(centre, variance, groups), groups)


def _common_totals(clusters: Sequence[RunScores]) -> tuple[list[int], int]:
    """Return the sum over each cluster's runs in millionths, and the divisor of them all."""
    each = [scores.total() for scores in clusters]
    common = math.lcm(*(scale for _, scale in each))
    return [total * (common // scale) for total, scale in each], common


def _bounded_interval(centre: float, variance: float, groups: int) -> tuple[float, float]:
    """Return the 95 % interval of a mean on the scale from 0 to 1, by the module's formulas."""
    spread = centre * (1 - centre)
    if spread == 0:
        # Scenarios that all score 0, or all 1, say no more than one answer each.
        return wilson_interval(centre, groups, _quantile(groups - 1))
    if variance == 0:
        return centre, centre
    likeness = min(1.0, groups * variance / spread)
    kurtosis = max(0.0, 1 / spread - 6) * likeness
    degrees = 2 / (2 / (groups - 1) + kurtosis / groups)
    return wilson_interval(centre, spread / variance, _quantile(degrees))


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
