"""What a reader of a difference has to know about the answers of both sides."""

from __future__ import annotations

from collections.abc import Sequence

from socratic_bench.domain.aggregates.answers import answers_in
from socratic_bench.domain.aggregates.cell import Cell
from socratic_bench.reporting.difference.sides import ComparedSide, model_of
from socratic_bench.reporting.formats import printable
from socratic_bench.reporting.leaderboard.answer_sentences import (
    notes_beside,
    rulers_differ,
    sentences,
)
from socratic_bench.scoring.profile import SAME_RULER


def answer_cautions(
    one: ComparedSide, other: ComparedSide, cells: Sequence[Cell], profile: str
) -> list[str]:
    """Return the notes on the answers of both in sentences, and a caution for two rulers."""
    sides = [
        (model_of(side), answers_in(cell for cell in cells if _belongs(cell, side)))
        for side in (one, other)
    ]
    notes = [
        notes_beside(own, [beside], profile)
        for own, beside in zip(sides, reversed(sides), strict=True)
    ]
    named = dict(zip(_titles(one, other), notes, strict=True))
    told = sentences(named, len(named))
    if rulers_differ(notes):
        told.append(
            "Their lengths are by different rulers, so a difference in verbosity may be that of "
            f"the rulers: --profile {SAME_RULER} measures both alike."
        )
    return told


def _titles(one: ComparedSide, other: ComparedSide) -> tuple[str, str]:
    if one[0] != other[0]:
        return printable(one[0]), printable(other[0])
    return f"{printable(one[0])}@{one[1].experiment_id}", f"@{other[1].experiment_id}"


def _belongs(cell: Cell, side: ComparedSide) -> bool:
    return (cell.key.model_id, cell.key.experiment_id) == (side[0], side[1].experiment_id)
