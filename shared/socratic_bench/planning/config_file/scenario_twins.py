"""Notes scenarios in which the student says the same: they are one sample, not several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from socratic_bench.domain.scenario import Scenario
from socratic_bench.invalid_values import shown
from socratic_bench.planning.config_file.source import Mistakes, Node

_MOST_NAMED: Final = 5


def note_twins(root: Node, scenarios: Sequence[Scenario], notes: Mistakes) -> None:
    """Add a note for each prompt, with its follow-ups, that stands under several ids."""
    ids: dict[tuple[str, ...], list[str]] = {}
    for scenario in scenarios:
        ids.setdefault(scenario.wording, []).append(scenario.id)
    place = root.place_of(("scenarios",))
    for twins in ids.values():
        if len(twins) > 1 and not notes.is_full:
            named = ", ".join(shown(each) for each in twins[:_MOST_NAMED])
            more = len(twins) - _MOST_NAMED
            others = f" and {more} more" if more > 0 else ""
            problem = f"{named}{others} have the same prompt: they measure one question repeatedly"
            notes.add(place, problem)
