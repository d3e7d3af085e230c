"""The bootstrap over groups: responses of one group resemble each other and are drawn together.

Percentile intervals (Efron and Tibshirani 1993, chapter 13; Field and Welsh 2007 for clusters).
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Final

CONFIDENCE: Final = 0.95


def group_draws(groups: int, resamples: int, seed: int) -> list[list[float]]:
    """Return how often each group is drawn, for each resample; a seed always gives the same."""
    source = random.Random(seed)  # noqa: S311 - statistics, not secrets
    draws = []
    for _ in range(resamples):
        weights = [0.0] * groups
        for drawn in source.choices(range(groups), k=groups):
            weights[drawn] += 1.0
        draws.append(weights)
    return draws


def percentile_interval(samples: Iterable[float | None]) -> tuple[float, float] | None:
    """Return the 95 % interval of resampled figures; None where fewer than twenty exist."""
    found = sorted(sample for sample in samples if sample is not None)
    if len(found) < 20:
        return None
    tail = (1 - CONFIDENCE) / 2
    return _quantile(found, tail), _quantile(found, 1 - tail)


def _quantile(found: list[float], share: float) -> float:
    place = share * (len(found) - 1)
    below = int(place)
    above = min(below + 1, len(found) - 1)
    return found[below] + (place - below) * (found[above] - found[below])
