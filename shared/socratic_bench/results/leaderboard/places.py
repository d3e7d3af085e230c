"""The places of the models of a leaderboard: ranks, and what other weights would make of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel, ConfigDict

from socratic_bench.domain.aggregates.difference import rank_intervals
from socratic_bench.domain.aggregates.leaderboard import Leaderboard, ModelRow
from socratic_bench.domain.aggregates.weightings import (
    MOST_WEIGHED,
    is_ahead_everywhere,
    rank_ranges,
    share_ahead,
)
from socratic_bench.providers.registry import is_reference
from socratic_bench.results.formats import printable, share

MOST_COMPARED: Final = 100
"""The most models that are compared in pairs: the pairs of more take too long for an answer."""

STEADY: Final = 0.95
"""The share of all weightings from which on the order of two models counts as steady."""


class OtherWeights(BaseModel):
    """A model's place under other weights of the vectors than the profile's.

    All weightings count alike: weights of 0 or more with the sum 1, the same in each dimension.
    """

    model_config = ConfigDict(frozen=True)

    next_model: str | None
    """The id of the model with the next rank; null for the last one."""

    share_ahead: float | None
    """The share of all weightings under which the model has a higher score than the next one; exact
    for these means. Null for the last one."""

    certain: bool
    """Whether each vector's own paired 95 % interval to the next model is above 0: the model is
    ahead under every weighting."""

    rank_range: tuple[int, int]
    """The best and the worst rank under 95 % of a fixed grid of up to 1,100 weightings."""

    @property
    def is_steady(self) -> bool:
        """Whether the model is ahead of the next one under nearly every weighting."""
        return self.share_ahead is None or self.share_ahead >= STEADY

    @property
    def share_text(self) -> str:
        """The share as a whole percentage, rounded down: 95 % is never less than that."""
        ahead = self.share_ahead
        return share(ahead if ahead is None else math.floor(100 * ahead) / 100 or ahead)


@dataclass(frozen=True, slots=True)
class Place:
    """A model's rank under its conditions, with its best and worst possible rank."""

    rank: int
    interval: tuple[int, int] | None
    other_weights: OtherWeights | None = None


def places(board: Leaderboard) -> list[Place | None]:
    """Return the place of each row among the rows under the same conditions."""
    found: list[Place | None] = []
    for conditions in board.conditions:
        found += _places([row for row in board.rows if row.conditions_id == conditions])
    return found


def _places(rows: Sequence[ModelRow]) -> list[Place | None]:
    """Return the place of each row; rows come best first."""
    scored = [row for row in rows if row.standing.overall.mean is not None]
    ranked = [row for row in scored if not is_reference(row.model)] or scored
    intervals: Sequence[tuple[int, int] | None] = [None] * len(ranked)
    others: Sequence[OtherWeights | None] = [None] * len(ranked)
    if len(ranked) <= MOST_COMPARED:
        intervals = rank_intervals([row.overall for row in ranked])
        others = _other_weights(ranked)
    placed = {
        row.model.id: Place(rank, interval, other)
        for rank, (row, interval, other) in enumerate(
            zip(ranked, intervals, others, strict=True), 1
        )
    }
    return [placed.get(row.model.id) for row in rows]


def _other_weights(rows: Sequence[ModelRow]) -> Sequence[OtherWeights | None]:
    vectors = tuple(rows[0].vector_means) if rows else ()
    is_known = len(rows) > 1 and 1 < len(vectors) <= MOST_WEIGHED
    if not is_known or not all(row.vector_means for row in rows):
        return [None] * len(rows)
    ranges = rank_ranges([[row.vector_means[each] for each in vectors] for row in rows])
    return [
        _beside(row, rows[rank] if rank < len(rows) else None, vectors, range_)
        for rank, (row, range_) in enumerate(zip(rows, ranges, strict=True), 1)
    ]


def _beside(
    row: ModelRow, other: ModelRow | None, vectors: Sequence[str], rank_range: tuple[int, int]
) -> OtherWeights:
    if other is None:
        return OtherWeights(next_model=None, share_ahead=None, certain=False, rank_range=rank_range)
    differences = [row.vector_means[each] - other.vector_means[each] for each in vectors]
    return OtherWeights(
        next_model=other.model.id,
        share_ahead=float(share_ahead(differences)),
        certain=is_ahead_everywhere(row.overall, other.overall, vectors),
        rank_range=rank_range,
    )


def unsteady_pairs(models: Iterable[tuple[str, OtherWeights | None]]) -> list[str]:
    """Return the neighbours whose order depends on the weights, each with its share."""
    return [
        f"{printable(model_id)} and {printable(weights.next_model)} ({weights.share_text})"
        for model_id, weights in models
        if weights is not None and weights.next_model is not None and not weights.is_steady
    ]
