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


@pytest.mark.parametrize(
    ("prompt", "noted"),
    [
        ("Solve problem #3 for me", "the text ends before '#3'"),
        ("Why does C #include files?", "the text ends before '#include'"),
        ("Solve problem 3  # for me", ""),
        ("'Solve problem #3'", ""),
    ],
)
def test_a_text_that_a_hash_may_have_cut_is_noted(prompt: str, noted: str):
    scenario = f"- id: a\n  dimension: student\n  prompt: {prompt}"
    text = f"models: [reference/socratic]\nscenarios:\n{scenario}"
    notes = " ".join(map(str, config_of(text).unused))
    assert noted in notes
    assert bool(noted) == bool(notes)


@pytest.mark.parametrize(
    ("occasion", "noted"),
    [
        ("2026-W9", "write 2026-W09"),
        ("2026-w48", "write 2026-W48"),
        ("2026W48", "write 2026-W48"),
        ("2026-W54", "2026 has no week 54"),
        ("2026-W53", ""),
        ("before the release", ""),
    ],
)
def test_an_occasion_that_is_nearly_a_week_is_noted(occasion: str, noted: str):
    (*notes,) = map(str, config_of(f"models: [reference/socratic]\noccasion: {occasion}").unused)
    assert len(notes) == bool(noted)
    assert noted in "".join(notes)
