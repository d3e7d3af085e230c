"""Measures of agreement: Cohen's kappa, paired differences, rank correlation, and AUC.

The area under the ROC curve (AUC) is the probability that a positive has a higher figure than a
negative, ties counting one half (Mann and Whitney 1947; Hanley and McNeil 1982).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, groupby
from math import sqrt
from operator import add, itemgetter, mul
from typing import Final, NamedTuple, Protocol


def kappa(predicted: Sequence[int], labels: Sequence[int]) -> float | None:
    """Return kappa of classes 0 and 1, -1.0 to 1.0; None where chance alone agrees always."""
    both = sum(one and other for one, other in zip(predicted, labels, strict=True))
    return _kappa(len(labels), sum(predicted), sum(labels), both)


def kappa_at(cut: float, figures: Sequence[float], labels: Sequence[int]) -> float | None:
    """Return kappa of the labels and the figures at or above `cut`."""
    return kappa([int(figure >= cut) for figure in figures], labels)


def best_cut(figures: Sequence[float], labels: Sequence[int]) -> float | None:
    """Return the figure at or above which a prediction agrees best with the labels.

    The lowest of the best ones counts; None unless both classes are there.
    """
    n, positives = len(labels), sum(labels)
    if not 0 < positives < n:
        return None
    best, cut = 0.0, None
    predicted = both = 0
    ordered = sorted(zip(figures, labels, strict=True), reverse=True)
    for place, (figure, label) in enumerate(ordered):
        predicted, both = predicted + 1, both + label
        if place + 1 < n and ordered[place + 1][0] == figure:
            continue
        found = _kappa(n, predicted, positives, both) or 0.0
        if cut is None or found >= best:
            best, cut = found, figure
    return cut


class HalvedKappa(NamedTuple):
    """Kappa of a column with cuts of its own, each chosen on the half that it is not used on."""

    kappa: float | None
    cuts: tuple[float, float]
    """The cut for the first half, chosen on the second one; and the cut for the second half."""


def halved_kappa(
    figures: Sequence[float], labels: Sequence[int], halves: Sequence[int]
) -> HalvedKappa | None:
    """Return kappa over both halves (0 and 1); None where a half has but one class."""
    cuts = []
    for half in (0, 1):
        others = [place for place, each in enumerate(halves) if each != half]
        cut = best_cut([figures[place] for place in others], [labels[place] for place in others])
        if cut is None:
            return None
        cuts.append(cut)
    predicted = [int(figure >= cuts[half]) for figure, half in zip(figures, halves, strict=True)]
    return HalvedKappa(kappa(predicted, labels), (cuts[0], cuts[1]))


def _kappa(n: int, predicted: int, positives: int, both: int) -> float | None:
    if n == 0:
        return None
    agreed = (n - predicted - positives + 2 * both) / n
    one, other = predicted / n, positives / n
    chance = one * other + (1 - one) * (1 - other)
    return None if chance == 1 else (agreed - chance) / (1 - chance)


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


def spearman(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Return the rank correlation, -1.0 to 1.0; None where one side has a single value."""
    first, second = ranks(one), ranks(other)
    middle = (len(first) + 1) / 2
    products = sum((a - middle) * (b - middle) for a, b in zip(first, second, strict=True))
    squares = sum((a - middle) ** 2 for a in first) * sum((b - middle) ** 2 for b in second)
    return products / sqrt(squares) if squares else None


def ranks(values: Sequence[float]) -> list[float]:
    """Return the rank of each value, from 1; equal values share the mean of their ranks."""
    order = sorted(range(len(values)), key=values.__getitem__)
    found = [0.0] * len(values)
    before = 0
    for _, tied in groupby(order, key=values.__getitem__):
        places = list(tied)
        for place in places:
            found[place] = before + (len(places) + 1) / 2
        before += len(places)
    return found


class _Getter(Protocol):
    def __call__(self, values: Sequence[float], /) -> tuple[float, ...]: ...


class Separation:
    """Figures with their labels and groups, ready for many draws of groups."""

    def __init__(
        self,
        figures: Sequence[float],
        labels: Sequence[int],
        groups: Sequence[int],
        number_of_groups: int,
    ) -> None:
        """Take one figure, one label (0 or 1) and one group (counted from 0) per response."""
        rows = list(zip(figures, labels, groups, strict=True))
        positives = [(figure, group) for figure, label, group in rows if label]
        negatives = sorted((figure, group) for figure, label, group in rows if not label)
        below = [figure for figure, _ in negatives]
        self._groups = number_of_groups
        # The sum over pairs is one over positives: the weight of the negatives below each.
        self._positive = _getter([group for _, group in positives])
        self._negative = _getter([group for _, group in negatives])
        self._lower = _getter([bisect_left(below, figure) for figure, _ in positives])
        self._upper = _getter([bisect_right(below, figure) for figure, _ in positives])

    def pairs(self, weights: Sequence[float]) -> tuple[float, float]:
        """Return the weighted pairs in the right order, and all pairs, given a weight per group."""
        positive, negative = self._positive(weights), self._negative(weights)
        sums = [0.0, *accumulate(negative)]
        twice = map(add, self._lower(sums), self._upper(sums))
        return sum(map(mul, positive, twice)) / 2, sum(positive) * sums[-1]

    def auc(self, weights: Sequence[float] | None = None) -> float | None:
        """Return the AUC, 0.0 to 1.0; None where a class is missing.

        `weights` has one weight per group, such as how often a bootstrap drew it.
        """
        right, every = self.pairs([1.0] * self._groups if weights is None else weights)
        return right / every if every else None


def coarsened(figures: Sequence[float], like: Sequence[float]) -> list[int]:
    """Return figures as levels, as many as `like` has and with its shares, as far as ties allow."""
    ordered, n = sorted(figures), len(figures)
    counts: dict[float, int] = {}
    for each in like:
        counts[each] = counts.get(each, 0) + 1
    below = accumulate(counts[level] for level in sorted(counts)[:-1])
    cuts = [ordered[min(place, n - 1)] for place in below]
    return [sum(figure >= cut for cut in cuts) for figure in figures]


def _getter(places: Sequence[int]) -> _Getter:
    """Return a function that gives the values at `places`, without a loop in Python."""
    if not places:
        return lambda values: ()
    if len(places) == 1:
        return lambda values: (values[places[0]],)
    return itemgetter(*places)


def auc_within(
    figures: Sequence[float], labels: Sequence[int], strata: Sequence[str]
) -> float | None:
    """Return the AUC over the pairs of one stratum each, such as one tutor; None without pairs."""
    rows: dict[str, list[tuple[float, int]]] = {}
    for figure, label, stratum in zip(figures, labels, strata, strict=True):
        rows.setdefault(stratum, []).append((figure, label))
    right = every = 0.0
    for members in rows.values():
        of_members = [figure for figure, _ in members], [label for _, label in members]
        one, other = Separation(*of_members, [0] * len(members), 1).pairs([1.0])
        right, every = right + one, every + other
    return right / every if every else None
