"""Cohen's kappa: agreement of two classifications beyond chance (Cohen 1960)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


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
