"""Cells under other weights of the vectors: a fold of the cells that there are.

`overall` of a linear profile is a weighted mean of its vectors in each response, so its sum over
responses is that mean of the vectors' sums. A cell has these sums; the weighted one is exact to
half a millionth. Means and intervals need no more.

The squares of the weighted scores would need the covariance of the vectors, which no cell has. The
sum of squares here is the most that it can be: that of vectors which rise and fall together (Cauchy
and Schwarz). Only the part of the variance between repeats comes from it, as an upper bound, as for
the turns of a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, isqrt

from socratic_bench.domain.aggregates.cell import Cell, Tally
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.errors import InvalidInput
from socratic_bench.scoring.profile import OVERALL, Profile, overall


def weighed_cell(cell: Cell, profile: Profile) -> Cell:
    """Return a cell of the base of a profile with other weights, as one of that profile.

    Raises InvalidInput where a vector with a weight does not apply to some response.
    """
    key = cell.key._replace(profile=profile.name)
    given = profile.weights.of(cell.dimension, profile.vectors)
    if given is None or not cell.scored:
        return replace(cell, key=key)
    weighed = [
        (name, weight) for name, weight in zip(profile.vectors, given, strict=True) if weight
    ]
    tallies = [cell.vectors.get(name, Tally()) for name, _ in weighed]
    for (name, _), tally in zip(weighed, tallies, strict=True):
        if tally.n != cell.scored:
            raise InvalidInput(
                f"{profile.name}: {name} does not apply to every response in {key.scenario_id}, so "
                "its weight has no exact figure; read the scores by "
                f"{cell.key.profile}, or give {name} the weight 0"
            )
    mean = weighted_tally(tallies, [weight for _, weight in weighed])
    return replace(cell, key=key, vectors={**cell.vectors, OVERALL: mean})


def weighed_score(scored: ScoredResponse, profile: Profile) -> ScoredResponse:
    """Return a score by the base of a profile with other weights, as one by that profile."""
    mean = None
    if scored.overall is not None and scored.vectors is not None:
        values = tuple(scored.vectors.get(name) for name in profile.vectors)
        mean = overall(values, profile.weights.of(scored.run.dimension, profile.vectors))
    return scored.model_copy(update={"profile": profile.name, "overall": mean})


def weighted_tally(vectors: Sequence[Tally], weights: Sequence[float]) -> Tally:
    """Return the sums of the weighted mean of some vectors, which have equally many scores.

    One weight at least is above 0. The sum of squares is an upper bound.
    """
    exact = [Fraction(weight) for weight in weights]
    whole, n = sum(exact), vectors[0].n
    total = round(sum(w * tally.total for w, tally in zip(exact, vectors, strict=True)) / whole)
    # n times a standard deviation, in whole numbers: the same on every machine.
    spreads = (_root(n * tally.squares - tally.total**2) for tally in vectors)
    spread = ceil(sum(w * each for w, each in zip(exact, spreads, strict=True)) / whole)
    return Tally(n, total, -(-(total**2 + spread**2) // n))


def _root(square: int) -> int:
    """Return the square root, rounded up."""
    root = isqrt(square)
    return root if root**2 == square else root + 1
