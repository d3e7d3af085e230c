"""The default pack: fifteen students worth asking, five per dimension."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from socratic_bench.domain.scenario import DIMENSIONS
from socratic_bench.errors import InvalidConfig
from socratic_bench.planning.config_file.scenario_selection import known_packs, load_pack
from socratic_bench.scoring.socratic_v1.vectors import EXPLORATORY_MARKERS, MarkerSet, lowered

SCENARIOS = load_pack()
GIVE_AWAY = ("socratic", "ask me", "hint", "don't tell me", "guide me", "step by step", "in short")
"""Words that would tell a tutor what is measured."""


def test_there_are_five_scenarios_per_dimension():
    assert Counter(scenario.dimension for scenario in SCENARIOS) == dict.fromkeys(DIMENSIONS, 5)


def test_an_id_begins_with_its_dimension_and_stands_once():
    ids = [scenario.id for scenario in SCENARIOS]
    assert len(set(ids)) == len(ids)
    for scenario in SCENARIOS:
        assert re.fullmatch(rf"{scenario.dimension}(-[a-z0-9]+)+", scenario.id)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.id)
def test_a_scenario_can_be_read_by_a_person_and_put_to_a_model(scenario):
    assert 80 <= len(scenario.prompt) <= 500
    assert scenario.prompt == scenario.prompt.strip()
    assert scenario.title
    assert scenario.persona
    assert "irst question:" in scenario.aim


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.id)
def test_a_prompt_does_not_give_away_what_is_measured(scenario):
    low = lowered(scenario.prompt)
    assert not [words for words in GIVE_AWAY if words in low]
    # A tutor who takes up the student's words is not to earn or lose anything by it.
    assert MarkerSet(EXPLORATORY_MARKERS).count(low) == 0


def test_no_two_students_ask_the_same():
    assert len({scenario.prompt for scenario in SCENARIOS}) == len(SCENARIOS)


def test_a_pack_is_read_once():
    assert load_pack("socratic-15") is load_pack("socratic-15")


def test_an_unknown_pack_is_refused_with_those_there_are():
    with pytest.raises(InvalidConfig, match=r"unknown scenario pack 'socratic-99'.*socratic-15"):
        load_pack("socratic-99")


def test_a_name_does_not_lead_out_of_the_folder():
    assert known_packs() == ("hollow-3", "pressure-24", "pressure-48", "socratic-15")
    with pytest.raises(InvalidConfig):
        load_pack("../packs/socratic-15")
