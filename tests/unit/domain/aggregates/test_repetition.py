"""A model that says the same on every scenario is found by its cells."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.domain.aggregates.answers import FEWEST_SCENARIOS, scenarios_alike
from socratic_bench.domain.aggregates.cell import Cell, CellKey, Tally


def cell(scenario: str, *scores: int, turn: int = 1) -> Cell:
    """A cell of responses with these millionths of overall, all of which ask."""
    made = Cell(CellKey("exp-1", "m", scenario, turn, "socratic-v1"), "student")
    for vector, values in {"overall": scores, "interrogative": [1_000_000] * len(scores)}.items():
        tally = made.vectors.setdefault(vector, Tally())
        for value in values:
            tally.add(value)
    return made


@given(
    scores=st.lists(st.integers(0, 1_000_000), min_size=1, max_size=3),
    scenarios=st.integers(FEWEST_SCENARIOS, 20),
    seed=st.integers(),
)
def test_one_reply_to_everything_is_counted_in_every_scenario(scores, scenarios, seed):
    cells = [cell(f"s{place}", *scores, turn=turn) for place in range(scenarios) for turn in (1, 2)]
    random.Random(seed).shuffle(cells)
    assert scenarios_alike(cells) == scenarios


@pytest.mark.parametrize(
    ("alike", "others", "counted"), [(8, 7, 8), (7, 7, 0), (3, 2, 3), (4, 0, 0), (0, 15, 0)]
)
def test_only_more_than_half_of_five_scenarios_or_more_is_striking(alike, others, counted):
    cells = [cell(f"same-{place}", 900_000) for place in range(alike)]
    cells += [cell(f"other-{place}", 100_000 + place) for place in range(others)]
    assert scenarios_alike(cells) == counted


def test_scenarios_without_a_score_are_not_alike():
    assert scenarios_alike([cell(f"s{place}") for place in range(15)]) == 0
