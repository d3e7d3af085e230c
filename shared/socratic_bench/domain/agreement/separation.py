"""The area under the ROC curve (AUC): how well figures separate two classes.

It is the probability that a positive has a higher figure than a negative, ties counting one half
(Mann and Whitney 1947; Hanley and McNeil 1982).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from operator import add, itemgetter, mul
from typing import Protocol


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
