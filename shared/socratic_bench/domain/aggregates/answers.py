"""The notes on a model's answers, summed over its cells."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from socratic_bench.domain.aggregates.cell import Cell
from socratic_bench.scoring import answer_notes

_SUMS = frozenset({answer_notes.SAME, answer_notes.SAME_SQUARES})

Days = tuple[date, date]


@dataclass(frozen=True, slots=True)
class Answers:
    """What cells tell of the answers behind a figure; answers of earlier versions have no notes."""

    count: int = 0
    """Answers whose notes were counted."""

    notes: Mapping[str, int] = field(default_factory=dict)
    """Per note of `scoring.answer_notes`: the answers that it holds for."""

    versions: Mapping[str, int] = field(default_factory=dict)
    """Per version that a provider reported: its answers."""

    asked: Mapping[str, int] = field(default_factory=dict)
    """Per day of UTC, as `2026-11-27`: the answers that were asked for on it."""

    reused: Mapping[str, int] = field(default_factory=dict)
    """The same of copies, which an earlier experiment asked for."""

    repeated: int = 0
    """Scenarios and turns with several answers, all of them one text."""

    asked_again: int = 0
    """Scenarios and turns with several answers."""

    @property
    def days(self) -> Days | None:
        """The first and the last day on which an answer was asked for; None where unknown."""
        return _days((*self.asked, *self.reused))

    @property
    def reused_days(self) -> Days | None:
        """The same of copies."""
        return _days(self.reused)

    @property
    def tokens_per_unit(self) -> float | None:
        """The provider's tokens for a word or mark; None without a count."""
        units = self.notes.get(answer_notes.UNITS, 0)
        return self.notes.get(answer_notes.TOKENS, 0) / units if units else None


def answers_in(cells: Iterable[Cell]) -> Answers:
    """Return the notes in these cells, one for each scenario and turn."""
    notes: Counter[str] = Counter()
    by_name = {
        prefix: Counter[str]()
        for prefix in (answer_notes.VERSION, answer_notes.ASKED, answer_notes.REUSED_OF)
    }
    repeated = asked_again = 0
    for cell in cells:
        for name, count in cell.counts.items():
            prefix = name[: name.find(".") + 1]
            if prefix in by_name:
                by_name[prefix][name.removeprefix(prefix)] += count
            elif name.startswith(answer_notes.PREFIX) and name not in _SUMS:
                notes[name] += count
        if cell.counts.get(answer_notes.ANSWERS, 0) > 1:
            asked_again += 1
            repeated += _is_one_text(cell)
    count = notes.pop(answer_notes.ANSWERS, 0)
    versions, asked, reused = by_name.values()
    return Answers(count, notes, versions, asked, reused, repeated, asked_again)


def _days(names: Iterable[str]) -> Days | None:
    """Return the first and the last of these days; names that are none come from no judge."""
    known = []
    for name in names:
        try:
            known.append(date.fromisoformat(name))
        except ValueError:
            continue
    return (min(known), max(known)) if known else None


def _is_one_text(cell: Cell) -> bool:
    """Whether all answers of a cell are one text: numbers are equal where n x squares = sum^2."""
    n = cell.counts[answer_notes.ANSWERS]
    total = cell.counts.get(answer_notes.SAME, 0)
    return n * cell.counts.get(answer_notes.SAME_SQUARES, 0) == total**2


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
