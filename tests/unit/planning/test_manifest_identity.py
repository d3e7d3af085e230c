"""The name of a manifest depends on the measured content alone."""

import json
from pathlib import Path

import pytest
import yaml

from socratic_bench.domain.experiment.manifest import Manifest
from tests.unit.planning.catalogue import config_of, mistakes_of

CONFIGS = Path(__file__).parents[3] / "deploy" / "cli" / "socratic_cli" / "configs"

CONFIG = """\
models:
- reference/socratic
- id: reference/lecturer
  name: Lecturer
  price: {input_per_million: 0.1, output_per_million: 2}
  limits: {concurrency: 4, timeout_seconds: 30}
  options: {latency_ms: 5, tags: [a, b]}
scenarios:
- id: prime-numbers
  dimension: student
  prompt: Is 91 prime?
  follow_ups: ["Are you sure?"]
- id: café
  dimension: ambiguous
  prompt: |
    Where do I begin?
repeats: 2
system_prompt: Ask.
parameters: {max_tokens: 300, temperature: 0.5}
profile: socratic-v1
occasion: 2026-W10
"""


def manifest_of(text: str, name: str = "benchmark.yaml") -> Manifest:
    return config_of(text, name).manifest


def test_a_fixed_configuration_has_its_fixed_names():
    manifest = manifest_of(CONFIG)
    assert manifest.manifest_id == "man-0ef1f200405baffb"
    assert manifest.conditions_id == "cond-df34e75110900f40"


def test_json_of_the_same_content_is_the_same_manifest():
    content = yaml.safe_load(CONFIG)
    as_json = json.dumps(content, indent="\t")
    config = config_of(CONFIG)
    assert config_of(as_json, "benchmark.json") == config
    assert config_of(as_json, "request body") == config


def test_the_order_of_keys_does_not_matter():
    def backwards(value):
        if isinstance(value, dict):
            return {key: backwards(value[key]) for key in reversed(value)}
        return [backwards(entry) for entry in value] if isinstance(value, list) else value

    text = json.dumps(backwards(yaml.safe_load(CONFIG)))
    assert manifest_of(text).manifest_id == manifest_of(CONFIG).manifest_id


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: Lecturer", "name: Teacher"),
        ("input_per_million: 0.1", "input_per_million: 7"),
        ("  price: {input_per_million: 0.1, output_per_million: 2}\n", ""),
        ("concurrency: 4", "concurrency: 9"),
        ("timeout_seconds: 30", "timeout_seconds: 3"),
        ("occasion: 2026-W10", "occasion: 2026-W11"),
        ("profile: socratic-v1", "profile: socratic-v1\ndeadline_hours: 0.5"),
        ("profile: socratic-v1", "profile: socratic-v1\npriority: high"),
        ("repeats: 2", "repeats: 2 # times"),
        ("repeats: 2", "repeats: 2\nname: A pilot\nnotes: |\n  Of two models.\n  For fun."),
        ("temperature: 0.5", "temperature: 5e-1"),
        ("  options:", "  parameters: {}\n  options:"),
    ],
)
def test_what_is_not_measured_does_not_change_the_name(old, new):
    assert CONFIG.count(old) == 1
    assert manifest_of(CONFIG.replace(old, new)).manifest_id == manifest_of(CONFIG).manifest_id


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("- reference/socratic", "- reference/hedger"),
        ("Is 91 prime?", "Is 97 prime?"),
        ("Are you sure?", "Really?"),
        ("dimension: student", "dimension: ethical"),
        ("system_prompt: Ask.", "system_prompt: Tell."),
        ("max_tokens: 300", "max_tokens: 301"),
        ("temperature: 0.5", "temperature: 0.6"),
        ("temperature: 0.5", "temperature: 0.5, top_p: 0.9"),
        ("latency_ms: 5", "latency_ms: 6"),
        ("[a, b]", "[b, a]"),
        ("  options:", "  base_url: http://localhost\n  options:"),
        ("  options:", "  system_prompt: Tell.\n  options:"),
        ("  options:", "  parameters: {max_tokens: 300}\n  options:"),
        ("repeats: 2", "repeats: 3"),
        ('["Are you sure?"]', '["Are you sure?"]\n  pressures: [opening, ask]'),
        ('["Are you sure?"]', '["Are you sure?"]\n  key: [seven]'),
    ],
)
def test_what_is_measured_changes_the_name(old, new):
    assert CONFIG.count(old) == 1
    assert manifest_of(CONFIG.replace(old, new)).manifest_id != manifest_of(CONFIG).manifest_id


def test_the_deadline_changes_neither_the_conditions_nor_the_experiment():
    hurried = manifest_of(CONFIG + "deadline_hours: 1\n")
    assert hurried.deadline_hours == 1
    assert manifest_of(CONFIG).deadline_hours == 24
    assert hurried.conditions_id == manifest_of(CONFIG).conditions_id


def test_another_profile_is_another_manifest():
    manifest = manifest_of(CONFIG)
    other = manifest.model_copy(update={"profile": "another-v1"})
    assert Manifest(**dict(other)).manifest_id != manifest.manifest_id


def test_the_name_depends_on_what_a_recording_holds(tmp_path):
    def manifest_id(content: str) -> str:
        (tmp_path / "lessons.jsonl").write_text(content)
        return config_of(
            "models: [replay/lessons.jsonl]", base_folder=tmp_path
        ).manifest.manifest_id

    assert manifest_id("one") != manifest_id("two")
    assert manifest_id("one") == manifest_id("one")


def test_a_recording_that_is_not_the_one_that_was_meant_is_a_mistake(tmp_path):
    (tmp_path / "lessons.jsonl").write_text("one")
    text = "models:\n- id: replay/lessons.jsonl\n  options:\n    sha256: abc"
    (mistake,) = mistakes_of(text, base_folder=tmp_path)
    assert mistake.startswith(
        "benchmark.yaml line 4, models[0].options.sha256: the file's hash is "
    )
    assert mistake.endswith(', not "abc": it has changed')


def test_plain_yaml_means_what_it_says():
    text = """\
models:
- id: reference/socratic
  options: {a: no, b: 2026-03-02, c: 010, d: 1:30, e: 1e-5, f: 0x1F, g: ~, h: .5, i: +7}
occasion: 2026-03-02
"""
    config = config_of(text)
    assert config.occasion == "2026-03-02"
    assert config.manifest.models[0].options == {
        "a": "no",
        "b": "2026-03-02",
        "c": 10,
        "d": "1:30",
        "e": 0.00001,
        "f": "0x1F",
        "g": None,
        "h": 0.5,
        "i": 7,
    }


def test_an_alias_repeats_what_its_anchor_says():
    text = """\
models:
- {id: reference/a, limits: &two {concurrency: 2}}
- {id: reference/b, limits: *two}
"""
    one, other = manifest_of(text).models
    assert one.limits == other.limits
    assert one.limits.concurrency == 2


def test_prices_are_exact():
    price = manifest_of(CONFIG).models[1].price
    assert price is not None
    assert str(price.input_per_million) == "0.1"


def test_what_is_left_out_has_its_default():
    manifest = manifest_of("models: [reference/socratic]")
    assert manifest == Manifest(models=manifest.models, scenarios=manifest.scenarios)
    assert manifest.planned_runs == 45


@pytest.mark.parametrize("name", ["demo.yaml", "demo-without-local.yaml", "quickstart.yaml"])
def test_the_configurations_that_are_shipped_ask_the_default_questions(name):
    text = (CONFIGS / name).read_text().replace("local/", "reference/")
    assert manifest_of(text).conditions_id == manifest_of("models: [reference/x]").conditions_id
