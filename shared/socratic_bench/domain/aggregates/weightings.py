"""How far the order of models depends on the weights of the vectors in `overall`.

A weighting gives each of n vectors a weight of 0 or more, and the weights add up to 1: it is a
point of a simplex. All weightings count alike. Where `overall` is a weighted mean of its vectors,
model A is ahead of model B under the weighting w if sum_i w_i d_i > 0, with the differences d of
their vectors' means. The share of such weightings is

    sum over i with d_i > 0 of d_i^(n - 1) / product over j != i of (d_i - d_j)

which is the divided difference of max(x, 0)^(n - 1) at the points d (Curry and Schoenberg 1966, "On
Polya Frequency Functions IV": a B-spline is the shadow of a simplex). Divided differences of equal
points are derivatives, so that equal differences need no limit. All of it is in exact fractions.

A rank depends on many models at once, and has no such formula: `rank_ranges` looks at a fixed grid
of weightings. The rank at each point of the grid is exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from operator import mul
from typing import Any, Final

from socratic_bench.domain.aggregates.cell import Cell
from socratic_bench.domain.aggregates.difference import paired_difference
from socratic_bench.domain.aggregates.parts import FigureSums
from socratic_bench.domain.aggregates.run_scores import VectorScores
from socratic_bench.domain.aggregates.statistics import exact_mean
from socratic_bench.scoring.composition import Composition
from socratic_bench.scoring.profile import OVERALL

MOST_WEIGHTINGS: Final = 1_100
"""The most points of the grid."""

MOST_WEIGHED: Final = 12
"""The most vectors: a grid of so few points says nothing of more."""

LEFT_OUT: Final = Fraction(1, 40)
"""The share of the weightings that a range of ranks leaves out at either end: 95 % are in it."""


def share_ahead(differences: Sequence[Fraction]) -> Fraction:
    """Return the share of all weightings under which the weighted difference is above 0.

    `differences` are those of the vectors' means, one vector at least. Equal models are ahead
    under no weighting.
    """
    points = sorted(differences)
    power = len(points) - 1
    row = [_derivative(point, power, 0) for point in points]
    for order in range(1, len(points)):
        row = [
            (row[at + 1] - row[at]) / (points[at + order] - points[at])
            if points[at + order] != points[at]
            else _derivative(points[at], power, order)
            for at in range(len(points) - order)
        ]
    return row[0]


def _derivative(point: Fraction, power: int, order: int) -> Fraction:
    """Return the derivative of max(x, 0)^power of this order at a point, divided by order!."""
    if point <= 0:
        return Fraction(0)
    return math.comb(power, order) * point ** (power - order)


def vector_means(
    cells: Iterable[Cell], scores: VectorScores[Any], composition: Composition
) -> dict[str, Fraction]:
    """Return the exact mean of each vector of a model, from its cells and their scores.

    Empty where `overall` is no weighted mean of these means: for a profile that combines its
    vectors otherwise, and where a vector does not apply to some scored response.
    """
    vectors = composition.moving
    if composition.weights is None or vectors is None or not scores.of(OVERALL):
        return {}
    for cell in cells:
        tallies = (cell.vectors.get(vector) for vector in vectors)
        if any(cell.scored != (0 if tally is None else tally.n) for tally in tallies):
            return {}
    return {vector: exact_mean(list(scores.of(vector).values())) for vector in vectors}


def is_ahead_everywhere(
    one: FigureSums[Any], other: FigureSums[Any], vectors: Sequence[str]
) -> bool:
    """Whether `one` is ahead of `other` under every weighting, beyond chance.

    Each vector's own paired 95 % interval is above 0. All of them have to be, so that no correction
    for their number is due.
    """
    for vector in vectors:
        if vector not in one.parts or vector not in other.parts:
            return False
        interval = paired_difference(one.of_part(vector), other.of_part(vector)).interval
        if interval is None or interval[0] <= 0:
            return False
    return True


def rank_ranges(models: Sequence[Sequence[Fraction]]) -> list[tuple[int, int]]:
    """Return the best and the worst rank of each model under 95 % of the weightings of the grid.

    `models` are the means of each model's vectors, all in the same order. Models with the same
    figure share the better rank.
    """
    scale = math.lcm(*(mean.denominator for means in models for mean in means))
    whole = [[int(mean * scale) for mean in means] for means in models]
    found: list[list[int]] = [[] for _ in models]
    grid = weighting_grid(len(models[0]))
    for weights in grid:
        figures = [sum(map(mul, weights, means)) for means in whole]
        rank_of: dict[int, int] = {}
        for rank, each in enumerate(sorted(figures, reverse=True), 1):
            rank_of.setdefault(each, rank)
        for ranks, each in zip(found, figures, strict=True):
            ranks.append(rank_of[each])
    cut = math.floor(len(grid) * LEFT_OUT)
    ordered = [sorted(ranks) for ranks in found]
    return [(ranks[cut], ranks[-1 - cut]) for ranks in ordered]


@lru_cache(maxsize=MOST_WEIGHED)
def weighting_grid(vectors: int) -> tuple[tuple[int, ...], ...]:
    """Return weightings of so many vectors, evenly over the simplex, as whole numbers.

    They are all (n k_i + 1) / (n (m + 1)) with whole k_i of sum m, for the largest m that gives
    MOST_WEIGHTINGS points or fewer: 1,081 for three vectors. No weight is 0, and each point stands
    for a part of the simplex of the same size.
    """
    steps = 0
    while math.comb(steps + vectors, vectors - 1) <= MOST_WEIGHTINGS and steps < MOST_WEIGHTINGS:
        steps += 1
    return tuple(
        tuple(vectors * each + 1 for each in parts) for parts in _compositions(steps, vectors)
    )


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Yield every way to write `total` as a sum of so many whole numbers in order."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _compositions(total - first, parts - 1):
            yield (first, *rest)
