"""Models that share a name, and scenarios that share a prompt."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from tests.unit.planning.catalogue import config_of, mistakes_of

LECTURER = "{id: reference/lecturer, name: Tutor}"


@pytest.mark.parametrize(
    "other",
    [
        f"{{id: reference/socratic, name: {name}}}"
        for name in ("Tutor", "'Tutor '", "tutor", '"Tu\u200btor"', "\uff34utor")
    ],
)
def test_two_models_with_one_name_are_a_mistake_that_names_both(other: str):
    (mistake,) = mistakes_of(f"models:\n- {LECTURER}\n- {other}")
    assert mistake.startswith(
        "benchmark.yaml line 3, models[1].name: "
        'models "reference/lecturer" and "reference/socratic" '
        'have one name, "'
    )


def test_a_name_that_is_another_model_s_id_is_a_mistake():
    text = "models:\n- reference/lecturer\n- {id: reference/socratic, name: reference/lecturer}"
    (mistake,) = mistakes_of(text)
    assert "have one name" in mistake


def test_models_with_names_of_their_own_are_fine():
    text = f"models: [{LECTURER}, reference/socratic]"
    assert config_of(text).unused == ()


def with_scenarios(*scenarios: Mapping[str, object]) -> str:
    full = [{"dimension": "student", **each} for each in scenarios]
    return f"models: [reference/socratic]\nscenarios: {json.dumps(full)}\n"


def test_a_prompt_under_several_ids_is_noted_with_the_ids():
    text = with_scenarios(
        {"id": "a", "prompt": "How do I add?"},
        {"id": "b", "prompt": "Why?"},
        {"id": "c", "prompt": "how  do I\nadd? "},
        {"id": "d", "prompt": "How do I add?", "follow_ups": ["So?"]},
    )
    (note,) = map(str, config_of(text).unused)
    assert note == (
        'benchmark.yaml line 2, scenarios: "a", "c" have the same prompt: '
        "they measure one question repeatedly"
    )


def test_only_the_first_ids_are_named():
    text = with_scenarios(*({"id": f"s{number}", "prompt": "Why?"} for number in range(12)))
    (note,) = map(str, config_of(text).unused)
    assert '"s4" and 7 more have the same prompt' in note
