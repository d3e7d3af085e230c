"""The cells of a newer experiment without its copies of older answers.

A copy is the answer that the older experiment got: a model compared with itself would agree with
itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from socratic_bench.domain.aggregates.answers import answers_in
from socratic_bench.domain.aggregates.cell import Cell, CellKey, fold, merge_into
from socratic_bench.ports.stores.aggregates import Aggregates
from socratic_bench.scoring.answer_notes import REUSED


def copies_in(cells: Iterable[Cell]) -> tuple[int, int]:
    """Return the copies among the answers of these cells, and the answers."""
    answers = answers_in(cells)
    return answers.notes.get(REUSED, 0), answers.count


async def own_answers(store: Aggregates, experiment_id: str, cells: Sequence[Cell]) -> list[Cell]:
    """Return these cells of an experiment, folded anew from the scores of its own answers.

    Without copies they are the cells themselves.
    """
    if not copies_in(cells)[0]:
        return list(cells)
    wanted = {cell.key for cell in cells}
    own: dict[CellKey, Cell] = {}
    async for scores in store.score_rows(experiment_id):
        asked = [scored for scored in scores if not scored.counts.get(REUSED)]
        folded = await asyncio.to_thread(fold, asked, ())
        merge_into(own, {key: cell for key, cell in folded.items() if key in wanted})
    return list(own.values())
