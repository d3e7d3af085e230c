"""The pressure packs and their placebo: whole squares, keys that are right, fixed contents."""

from __future__ import annotations

import re
from collections import Counter
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import pytest

from socratic_bench.domain.scenario import DIMENSIONS
from socratic_bench.planning.config_file.scenario_selection import read_pack
from socratic_bench.planning.packs.lint import HOLLOW, PRESSURES, balanced, findings_in
from tests.unit.planning.test_scenario_packs import GIVE_AWAY

ROOT = Path(__file__).parents[3]
FOLDER = Path(str(files("socratic_bench.planning.packs")))
ROWS = {"pressure-24": (0, 1, 7, 2, 6, 3, 5, 4), "pressure-48": (0, 3, 5, 6, 2, 1, 7, 4)}
HASHES = {
    "socratic-15": "pack-2af48e332e43586c0e693b17e414d857",
    "pressure-24": "pack-362b5fe135c10ccfa0df9c2494af36d9",
    "pressure-48": "pack-10480e55c7ba19eb8a49f7b6b50c0d31",
    "hollow-3": "pack-562bc376b93b9ab4cbac18034499b65d",
}
PACKS = {name: read_pack(FOLDER / f"{name}.yaml") for name in HASHES}
SCRIPTS = [each for name in ROWS for each in PACKS[name].scenarios]


@pytest.mark.parametrize("name", HASHES)
def test_a_built_in_pack_breaks_no_rule(name):
    assert findings_in(PACKS[name], f"{name}.yaml") == ()


@pytest.mark.parametrize("name", HASHES)
def test_the_content_of_a_built_in_pack_is_fixed_and_its_hash_is_published(name):
    assert PACKS[name].content_hash == HASHES[name]
    published = (ROOT / "docs/packs.md").read_text(encoding="utf-8")
    assert f"`{HASHES[name]}`" in published


@pytest.mark.parametrize("name", ROWS)
def test_script_i_of_a_dimension_has_row_i_of_its_square(name):
    for dimension in DIMENSIONS:
        of_it = [each for each in PACKS[name].scenarios if each.dimension == dimension]
        assert len(of_it) == len(PRESSURES)
        for row, script in enumerate(of_it):
            due = [PRESSURES[(number + row) % 8] for number in ROWS[name]]
            frame = ("opening", "effort", *due, "effort", "closing")
            assert script.pressures == frame


@pytest.mark.parametrize("name", ROWS)
def test_each_kind_stands_once_in_each_place_and_follows_each_other_kind_once(name):
    squares = balanced(PACKS[name].scenarios)
    assert tuple(squares) == DIMENSIONS
    for scripts in squares.values():
        rows = [script.pressures[2:10] for script in scripts]
        assert all(Counter(place) == Counter(PRESSURES) for place in zip(*rows, strict=True))
        pairs = Counter(pair for row in rows for pair in pairwise(row))
        assert pairs == {(a, b): 1 for a in PRESSURES for b in PRESSURES if a != b}


def test_the_second_square_repeats_no_three_kinds_of_the_first_in_a_row():
    first, second = (
        {script.pressures[at : at + 3] for script in PACKS[name].scenarios for at in range(2, 8)}
        for name in ROWS
    )
    assert first.isdisjoint(second)


def test_every_problem_and_every_message_is_new():
    everything = [each for pack in ("socratic-15", *ROWS) for each in PACKS[pack].scenarios]
    assert len({each.id for each in everything}) == 15 + 48
    messages = [message for each in everything for message in each.student_messages]
    assert len(set(messages)) == len(messages)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.id)
def test_a_script_can_be_read_by_a_person_and_has_a_key_where_a_result_is_asked(script):
    assert script.title
    assert script.persona
    assert script.aim
    assert all(message == message.strip() for message in script.student_messages)
    assert len(script.key) in (range(2, 9) if script.dimension == "student" else {0})
    assert not [words for words in GIVE_AWAY if words in script.prompt.lower()]


@pytest.mark.parametrize("name", [*ROWS, "hollow-3"])
def test_the_remark_beside_a_message_is_its_kind(name):
    text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    remarks = re.findall(r"^ {6}- >- # (\w+)$", text, re.MULTILINE)
    assert remarks == [kind for each in PACKS[name].scenarios for kind in each.pressures[1:]]


def test_a_placebo_opens_as_a_script_of_its_dimension_and_presses_for_nothing():
    openings = {(each.dimension, each.prompt, each.key) for each in PACKS["pressure-24"].scenarios}
    placebos = PACKS["hollow-3"].scenarios
    assert [each.dimension for each in placebos] == list(DIMENSIONS)
    assert {(each.dimension, each.prompt, each.key) for each in placebos} <= openings
    assert all(set(each.pressures[1:]) == {HOLLOW} for each in placebos)
