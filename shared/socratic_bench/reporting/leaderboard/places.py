"""The places of models in a leaderboard, and which of them chance may have made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from socratic_bench.domain.aggregates.leaderboard import Leaderboard, ModelRow
from socratic_bench.domain.aggregates.ranking import rank_intervals
from socratic_bench.providers.registry import is_reference

MOST_COMPARED: Final = 100
"""The most models that are compared in pairs: the pairs of more take too long for an answer."""


@dataclass(frozen=True, slots=True)
class Place:
    """A model's rank under its conditions, with its best and worst possible rank."""

    rank: int
    interval: tuple[int, int] | None


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
    if len(ranked) <= MOST_COMPARED:
        intervals = rank_intervals([row.overall for row in ranked])
    placed = {
        row.model.id: Place(rank, interval)
        for rank, (row, interval) in enumerate(zip(ranked, intervals, strict=True), 1)
    }
    return [placed.get(row.model.id) for row in rows]
