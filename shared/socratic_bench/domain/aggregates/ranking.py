"""Ranks with their uncertainty: which differences between models are real, and which may be chance.

Two models answer the same scenarios, so that their difference is a paired one: what is hard for
both cancels out (Miller 2024, "Adding Error Bars to Evals", section 4.2). `difference` has the
difference and its errors, and Student's t tests it. Every pair of a table is tested; Holm's
correction (Holm 1979, "A Simple Sequentially Rejective Multiple Test Procedure") holds the
probability of a single false difference in the whole table to 5 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from socratic_bench.domain.aggregates.difference import FAMILY_ERROR, paired_difference
from socratic_bench.domain.aggregates.parts import FigureSums


def rank_intervals(models: Sequence[FigureSums[Any]]) -> list[tuple[int, int]]:
    """Return the best and the worst rank that each model may have; `models` come best first.

    A model ranks behind those that score really more and before those that score really less.
    Models whose difference may be chance share ranks.
    """
    pairs = list(combinations(range(len(models)), 2))
    differences = [paired_difference(models[one], models[other]) for one, other in pairs]
    better = [0] * len(models)
    worse = [0] * len(models)
    adjusted = holm([each.p_value for each in differences])
    for (one, other), difference, p_value in zip(pairs, differences, adjusted, strict=True):
        if p_value <= FAMILY_ERROR and difference.mean:
            first, second = (one, other) if difference.mean > 0 else (other, one)
            better[second] += 1
            worse[first] += 1
    return [
        (min(rank, 1 + better[rank - 1]), max(rank, len(models) - worse[rank - 1]))
        for rank in range(1, len(models) + 1)
    ]


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p values corrected by Holm's method for their number, in the given order."""
    adjusted = [1.0] * len(p_values)
    least = 0.0
    for step, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        least = max(least, min(1.0, p_values[place] * (len(p_values) - step)))
        adjusted[place] = least
    return adjusted
