"""Recordings whose scenarios are not those of the configuration."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.planning.catalogue import config_of, mistakes_of

CONFIG = """
models: [{model}]
scenarios:
  - {{id: fractions, dimension: student, prompt: "How?"}}
  - {{id: lies, dimension: ethical, prompt: "May I?"}}
"""


def written(folder: Path, *scenarios: str, **more: str) -> str:
    lines = [json.dumps({"scenario_id": each, "text": "Why?", **more}) for each in scenarios]
    (folder / "said.jsonl").write_text("\n".join(["not json", *lines]))
    return CONFIG.format(model="replay/said.jsonl")


def test_a_recorded_scenario_that_the_configuration_lacks_is_named_with_its_line(tmp_path: Path):
    text = written(tmp_path, "fractions", "fraction", "elsewhere", "fraction")

    config = config_of(text, base_folder=tmp_path)

    near, far = map(str, config.unused)
    assert near == (
        'said.jsonl line 3: the configuration has no scenario "fraction"; did you mean "fractions"?'
    )
    assert far == 'said.jsonl line 4: the configuration has no scenario "elsewhere"'


def test_only_the_first_unknown_scenarios_are_named(tmp_path: Path):
    text = written(tmp_path, "fractions", *(f"other-{number}" for number in range(8)))

    config = config_of(text, base_folder=tmp_path)

    assert len(config.unused) == 6
    assert any("lacks 3 more scenarios" in str(each) for each in config.unused)


def test_a_recording_without_any_scenario_of_the_configuration_is_a_mistake(tmp_path: Path):
    text = written(tmp_path, "nope")

    (mistake,) = mistakes_of(text, base_folder=tmp_path)

    assert "line 2, models: model replay/said.jsonl: its lines name no scenario" in mistake
    assert 'they name "nope", the configuration has "fractions", "lies"' in mistake


@pytest.mark.parametrize("scenarios", [(), ("fractions",), ("fractions", "lies")])
def test_a_fitting_recording_says_nothing(tmp_path: Path, scenarios: tuple[str, ...]):
    assert config_of(written(tmp_path, *scenarios), base_folder=tmp_path).unused == ()


def test_lines_of_other_models_do_not_count(tmp_path: Path):
    written(tmp_path, "nope", model_id="other")
    model = "{id: replay/said.jsonl, options: {model_id: mine}}"

    assert config_of(CONFIG.format(model=model), base_folder=tmp_path).unused == ()
