"""Cohen's kappa: agreement of two classifications beyond chance (Cohen 1960)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

CUTS: Final = tuple(number / 100 for number in range(1, 101))
"""The cuts to choose from: a figure at or above the cut counts as positive."""


def kappa(predicted: Sequence[int], labels: Sequence[int]) -> float | None:
    """Return kappa of classes 0 and 1, -1.0 to 1.0; None where chance alone agrees always."""
    n = len(labels)
    if n == 0:
        return None
    agreed = sum(one == other for one, other in zip(predicted, labels, strict=True)) / n
    one, other = sum(predicted) / n, sum(labels) / n
    chance = one * other + (1 - one) * (1 - other)
    return None if chance == 1 else (agreed - chance) / (1 - chance)


def kappa_at(cut: float, figures: Sequence[float], labels: Sequence[int]) -> float | None:
    """Return kappa of the labels and the figures at or above `cut`."""
    return kappa([int(figure >= cut) for figure in figures], labels)


def best_cut(sets: Sequence[tuple[Sequence[float], Sequence[int]]]) -> float | None:
    """Return the cut with the highest mean kappa over sets of figures and labels.

    The lowest such cut counts; None without sets.
    """
    if not sets:
        return None
    return max(CUTS, key=lambda cut: sum(kappa_at(cut, *each) or 0.0 for each in sets))
