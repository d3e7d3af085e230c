"""Spearman's rank correlation: Pearson's of the ranks, ties at their mean (Spearman 1904)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import sqrt


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
