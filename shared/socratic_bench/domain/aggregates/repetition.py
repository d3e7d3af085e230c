"""Whether a model may give the same reply to different scenarios, as far as cells tell."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Final

from socratic_bench.domain.aggregates.cell import Cell

FEWEST_SCENARIOS: Final = 5
"""Among fewer scenarios, equal figures are too likely by chance."""


def scenarios_alike(cells: Iterable[Cell]) -> int:
    """Return how many scenarios of one model have exactly the same sums of every vector.

    Cells hold no texts, but a reply that repeats has the same number of tokens and the same words,
    so all its sums are equal. Returns 0 unless more than half of the scored scenarios are alike, of
    five or more: two short replies may have equal figures by chance.
    """
    figures: defaultdict[str, list[tuple[object, ...]]] = defaultdict(list)
    for cell in cells:
        if cell.scored:
            sums = ((name, each.n, each.total, each.squares) for name, each in cell.vectors.items())
            figures[cell.key.scenario_id].append((cell.key.turn, *sorted(sums)))
    groups = Counter(tuple(sorted(each, key=repr)) for each in figures.values())
    largest = max(groups.values(), default=0)
    is_striking = len(figures) >= FEWEST_SCENARIOS and 2 * largest > len(figures)
    return largest if is_striking else 0
