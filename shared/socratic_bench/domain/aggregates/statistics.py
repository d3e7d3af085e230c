"""Means and their uncertainty, as folds of cells.

A run counts once, however many turns it has: `run_scores` gives the mean of each. Runs of one
scenario resemble each other: they are one cluster, and the standard error of a mean over runs is
the cluster-robust one. With clusters c of n_c runs and sum S_c, N runs in all, mean m and G
clusters:

    variance = G / (G - 1) * sum_c (S_c - n_c * m)^2 / N^2

(Liang and Zeger 1986, with the usual small-sample factor; Miller 2024, "Adding Error Bars to
Evals", section 2.2, for evaluations.)

Scores end at 0 and 1, and near an end few clusters carry the spread: m +- t * error covers too
seldom there. The 95 % interval reaches at least as far as Wilson's (1927) for the number of
independent yes-or-no answers that would have this variance,

    n = m * (1 - m) / variance

(Korn and Graubard 1998, "Confidence Intervals for Proportions With Small Expected Number of
Positive Counts Estimated From Survey Data"), and at least as far as m - t * sqrt(below) and
m + t * sqrt(above): `parts` has these variances, which leave room for a failure that no cluster
showed. t is Student's quantile with G - 1 degrees of freedom.
`tests/benchmarks/interval_coverage.py` measures how often the interval covers.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Final, NamedTuple, TypeVar

from socratic_bench.domain.aggregates.cell import MILLIONTHS, Tally
from socratic_bench.domain.aggregates.parts import Floors, Part, floors, jump_of, largest, parts_of
from socratic_bench.domain.aggregates.run_scores import RunScores, VectorScores
from socratic_bench.scoring.composition import Composition

Scenario = TypeVar("Scenario", bound=Hashable)

CONFIDENCE: Final = 0.95

FEWEST_CLUSTERS: Final = 5
"""The fewest scenarios that an interval is made from: with fewer, it covers too seldom."""


@dataclass(frozen=True, slots=True)
class MeanEstimate:
    """A mean over runs with its uncertainty; None where the runs are too few."""

    n: int
    """Scored responses."""

    mean: float | None
    """Over runs, 0.0 to 1.0."""

    interval: tuple[float, float] | None
    """95 %, clustered by scenario; None with fewer than FEWEST_CLUSTERS scenarios."""

    clusters: int


class PartScores(NamedTuple):
    """A vector with which a figure may fall, and its weight: an average over the figure's runs."""

    name: str
    weight: float
    clusters: Sequence[RunScores]


@dataclass(frozen=True, slots=True)
class PartFloors:
    """The figures of a part that lead to its floors."""

    name: str
    weight: float
    mean: float
    variance: float
    """Of the mean; 0 for a single cluster."""

    jump: float
    floors: Floors
    """Of the vector itself, before its weight."""


@dataclass(frozen=True, slots=True)
class BoundedInterval:
    """A 95 % interval of a mean on the scale from 0 to 1, with the figures that lead to it."""

    answers: float | None
    """The independent yes-or-no answers that would have this variance; None without variance."""

    quantile: float
    """Of Student's t, with one degree of freedom less than there are clusters."""

    floors: Floors
    ends: tuple[float, float]


@dataclass(frozen=True, slots=True)
class ClusteredMean:
    """A mean over runs with its clusters, and the interval that they give."""

    scores: int
    """Scored responses."""

    runs: int
    mean: float
    residuals: tuple[float, ...]
    """Of each cluster: its sum, less its runs times the mean."""

    squares: float
    """The sum of the residuals' squares."""

    variance: float | None
    """None without an interval."""

    parts: tuple[PartFloors, ...]
    """Empty without an interval."""

    interval: BoundedInterval | None
    """None with fewer clusters than it needs."""


def clustered_estimate(clusters: Sequence[RunScores]) -> MeanEstimate:
    """Return the mean of a vector over all runs, with an interval: each element is one cluster.

    Each holds one scenario's scores; empty ones do not count.
    """
    return _estimate(clustered_mean(clusters))


def figure_estimate(
    scores: VectorScores[Scenario], figure: str, composition: Composition
) -> MeanEstimate:
    """Return the mean of `overall`, or of a vector, with the interval that its parts give it."""
    return _estimate(figure_mean(scores, figure, composition))


def _estimate(found: ClusteredMean | None) -> MeanEstimate:
    if found is None:
        return MeanEstimate(0, None, None, 0)
    ends = None if found.interval is None else found.interval.ends
    return MeanEstimate(found.scores, found.mean, ends, len(found.residuals))


def clustered_mean(
    clusters: Sequence[RunScores],
    parts: Sequence[PartScores] = (),
    fewest: int = FEWEST_CLUSTERS,
) -> ClusteredMean | None:
    """Return the figures behind an estimate; None without a score.

    Without `parts` the scores are those of a vector, which is its own part. Fewer than `fewest`
    clusters have no interval.
    """
    sums = _ExactSums(clusters)
    if sums.runs == 0:
        return None
    groups, variance = len(sums.clusters), None
    found: tuple[PartFloors, ...] = ()
    interval = None
    if groups >= fewest:
        variance = sums.variance()
        found = tuple(_part_floors(each, sums) for each in parts or [PartScores("", 1.0, clusters)])
        least = largest(each.floors.times(each.weight) for each in found)
        interval = bounded_interval(sums.mean, variance, groups, least)
    return ClusteredMean(
        scores=sum(scores.scores for scores in sums.clusters),
        runs=sums.runs,
        mean=sums.mean,
        residuals=tuple(each / sums.runs / sums.scale / MILLIONTHS for each in sums.residuals()),
        squares=sums.squares() / (sums.runs**2 * sums.scale**2) / MILLIONTHS**2,
        variance=variance,
        parts=found,
        interval=interval,
    )


def exact_mean(clusters: Sequence[RunScores]) -> Fraction:
    """Return the mean over runs, 0 to 1, as the fraction that it is; there is one run at least."""
    return _ExactSums(clusters).exact_mean


def fewest_scenarios(figure: str, composition: Composition) -> int:
    """Return the fewest scenarios that a figure has an interval from."""
    return max(FEWEST_CLUSTERS, composition.fewest.get(figure, 0))


def figure_mean(
    scores: VectorScores[Scenario], figure: str, composition: Composition
) -> ClusteredMean | None:
    """Return the mean of `overall` or of a vector, with its parts; None without a score."""
    own = scores.of(figure)
    parts = [
        PartScores(part.name, _mean_weight(part, own), list(part.scores.values()))
        for part in parts_of(scores, figure, composition)
    ]
    return clustered_mean(list(own.values()), parts, fewest_scenarios(figure, composition))


def _mean_weight(part: Part[Scenario], own: Mapping[Scenario, RunScores]) -> float:
    """Return the weight of a part, as a mean over the runs of the figure."""
    weighed = math.fsum(scores.runs * part.weights[each] for each, scores in own.items())
    return weighed / sum(scores.runs for scores in own.values())


def _part_floors(part: PartScores, figure: _ExactSums) -> PartFloors:
    sums = figure if part.clusters is figure.given else _ExactSums(part.clusters)
    responses = Tally()
    for scores in sums.clusters:
        responses.merge(scores.responses())
    jump = jump_of(responses, [scores.mean or 0.0 for scores in sums.clusters]).jump
    variance = sums.variance() if len(sums.clusters) > 1 else 0.0
    least = floors(variance, jump, sums.mean, len(sums.clusters))
    return PartFloors(part.name, part.weight, sums.mean, variance, jump, least)


class _ExactSums:
    """The sums of the clusters that have scores, in whole numbers: the residuals are exact."""

    def __init__(self, clusters: Sequence[RunScores]) -> None:
        self.given = clusters
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
    def exact_mean(self) -> Fraction:
        """Over the runs, of which there is one at least."""
        return Fraction(self._total, self.runs * self.scale * MILLIONTHS)

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


def bounded_interval(centre: float, variance: float, groups: int, least: Floors) -> BoundedInterval:
    """Return the 95 % interval of a mean on the scale from 0 to 1, by the module's formulas.

    `least` are the floors of the figure: of its largest part.
    """
    quantile = student_t_quantile((1 + CONFIDENCE) / 2, groups - 1)
    answers, low, high = None, centre, centre
    if variance > 0:
        answers = centre * (1 - centre) / variance
        low, high = wilson_interval(centre, answers, quantile)
    low = max(0.0, min(low, centre - quantile * math.sqrt(least.below)))
    high = min(1.0, max(high, centre + quantile * math.sqrt(least.above)))
    return BoundedInterval(answers, quantile, least, (low, high))


def wilson_interval(centre: float, answers: float, quantile: float) -> tuple[float, float]:
    """Return Wilson's interval of a share `centre` of `answers` independent answers."""
    weight = quantile**2 / answers
    middle = (centre + weight / 2) / (1 + weight)
    reach = math.sqrt(weight * centre * (1 - centre) + weight**2 / 4) / (1 + weight)
    low, high = max(0.0, middle - reach), min(1.0, middle + reach)
    # Rounding aside, both hold already.
    return min(low, centre), max(high, centre)


_MANY_DEGREES: Final = 1000
"""Beyond these the series of the distribution function takes long."""


@lru_cache(maxsize=4096)
def student_t_quantile(probability: float, degrees: int) -> float:
    """Return the `probability` quantile of Student's t with `degrees` of freedom.

    Bisects the distribution function; of many degrees it is an expansion. Raises ValueError for a
    probability outside 0.5 to 1 or fewer than one degree of freedom.
    """
    if not 0.5 <= probability < 1.0 or degrees < 1:
        raise ValueError(f"no such quantile: probability {probability}, degrees {degrees}")
    if degrees > _MANY_DEGREES:
        return _near_normal_quantile(probability, degrees)
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


def _near_normal_quantile(probability: float, degrees: int) -> float:
    """Return the quantile by Cornish and Fisher's expansion (Abramowitz and Stegun 26.7.5)."""
    z = NormalDist().inv_cdf(probability)
    return (
        z
        + (z**3 + z) / (4 * degrees)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * degrees**3)
    )


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
