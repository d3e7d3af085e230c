"""The configuration of the predecessor loads, field by field."""

import json
from decimal import Decimal

import pytest

from socratic_bench.domain.experiment.manifest import Manifest, Parameters, TutorModel
from socratic_bench.domain.money import Price
from socratic_bench.domain.scenario import Scenario
from socratic_bench.planning.config_file.scenario_selection import load_pack
from tests.unit.planning.catalogue import config_of, mistakes_of

CONFIG = """\
{
  "models": [
    {
      "model_id": "anthropic.claude-sonnet-4-5-20250929-v1:0",
      "name": "Claude Sonnet 4.5",
      "provider": "anthropic",
      "cost_per_1k_input": 0.003,
      "cost_per_1k_output": 0.015,
      "expected_score": 6.5
    },
    {
      "model_id": "amazon.nova-lite-v1:0",
      "cost_per_1k_input": 0.00006,
      "cost_per_1k_output": 0.00024
    },
    {"model_id": "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.meta.llama4"},
    {"model_id": "reference/socratic"}
  ],
  "scenarios": [
    {"id": "student-empty-lines", "test_type": "elenchus", "max_turns": 5},
    {"id": "EV-AMB-001", "name": "Growth", "vector": "ambiguous", "prompt": "How do I grow?"},
    {"id": "EV-ETH-001", "dimension": "ethical", "prompt": "May I lie?"}
  ],
  "parameters": {
    "judge_model": "anthropic.claude-3-5-sonnet",
    "temperature": 0.7,
    "max_tokens": 500
  },
  "weekly_schedule": {"day": "Monday"},
  "metadata": {"config_version": "2.1"}
}
"""


def test_a_configuration_of_the_predecessor_is_the_manifest_it_means():
    manifest = config_of(CONFIG, "config.json").manifest
    empty_lines, *own = manifest.scenarios
    assert empty_lines.id == "student-empty-lines"
    assert manifest == Manifest(
        models=(
            TutorModel(
                id="bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0",
                name="Claude Sonnet 4.5",
                price=Price(input_per_million=Decimal(3), output_per_million=Decimal(15)),
            ),
            TutorModel(
                id="bedrock/amazon.nova-lite-v1:0",
                price=Price(input_per_million=Decimal("0.06"), output_per_million=Decimal("0.24")),
            ),
            TutorModel(
                id="bedrock/arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.meta.llama4"
            ),
            TutorModel(id="reference/socratic"),
        ),
        scenarios=(
            empty_lines,
            Scenario(
                id="EV-AMB-001", title="Growth", dimension="ambiguous", prompt="How do I grow?"
            ),
            Scenario(id="EV-ETH-001", dimension="ethical", prompt="May I lie?"),
        ),
        parameters=Parameters(max_tokens=500, temperature=0.7),
    )
    assert own[0].title == "Growth"


def test_what_nothing_uses_any_more_is_told_but_no_mistake():
    unused = config_of(CONFIG, "config.json").unused
    assert {mistake.problem for mistake in unused} == {"is not used by this version"}
    assert [mistake.place for mistake in unused] == [
        "config.json line 6, models[0].provider",
        "config.json line 9, models[0].expected_score",
        "config.json line 20, scenarios[0].test_type",
        "config.json line 20, scenarios[0].max_turns",
        "config.json line 25, parameters.judge_model",
        "config.json line 29, weekly_schedule",
        "config.json line 30, metadata",
    ]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"cost_per_1k_input": -0.003},
         "models[0].cost_per_1k_input: must be 0 or more, not -0.003"),
        ({"cost_per_1k_output": 1001},
         "models[0].cost_per_1k_output: must be 1000 or less, not 1001"),
        ({"cost_per_1k_output": None},
         "models[0].cost_per_1k_output: must be a number, not empty"),
        ({"model_id": 3}, "models[0].model_id: must be text, not 3: put it in quotes"),
        ({"model_id": ""}, "models[0].model_id: must not be empty"),
        ({"id": "reference/socratic"}, "models[0].id: is given twice: as `id` and as `model_id`"),
        ({"limit": {}}, "models[0].limit: unknown field; did you mean `limits`?"),
        ({"price": {"input_per_million": 1, "output_per_million": 1}},
         "models[0].price: is given twice: for a million tokens and for a thousand"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_by_the_names_of_the_predecessor(change, sentence):
    model = {"model_id": "x.y", "cost_per_1k_input": 0.1, "cost_per_1k_output": 0.1, **change}
    mistakes = mistakes_of(json.dumps({"models": [model]}), "config.json")
    assert mistakes[-1] == f"config.json line 1, {sentence}"


def test_mistakes_name_the_lines_and_the_fields_of_the_old_file():
    text = """\
{
  "models": [
    {
      "model_id": "x y ",
      "name": 3,
      "cost_per_1k_input": -1,
      "cost_per_1k_output": 0.1
    },
    {"model_id": "a.b",
     "cost_per_1k_input": 0.1}
  ],
  "scenarios": [
    {"id": "own",
     "name": 5,
     "vector": 7,
     "prompt": "Why?"}
  ],
  "budget": "cheap"
}"""
    places = [mistake.partition(":")[0] for mistake in mistakes_of(text, "config.json")]
    assert places == [
        "config.json line 4, models[0].model_id",
        "config.json line 5, models[0].name",
        "config.json line 6, models[0].cost_per_1k_input",
        "config.json line 9, models[1].cost_per_1k_output",
        "config.json line 14, scenarios[0].name",
        "config.json line 15, scenarios[0].vector",
        "config.json line 18, budget",
    ]


def test_a_price_for_one_direction_only_is_a_mistake():
    text = '{"models": [{"model_id": "x.y", "cost_per_1k_input": 0.1}]}'
    assert mistakes_of(text, "config.json") == [
        "config.json line 1, models[0].cost_per_1k_output: is missing"
    ]


def test_scenarios_the_predecessor_kept_elsewhere_are_left_out_and_told():
    text = """{"models": [{"model_id": "x.y"}],
 "scenarios": [{"id": "EV-AMB-001"},
  {"id": "own", "vector": "ethical", "prompt": "May I?"}]}"""
    config = config_of(text, "config.json")
    assert [scenario.id for scenario in config.manifest.scenarios] == ["own"]
    assert list(map(str, config.unused)) == [
        'config.json line 2, scenarios[0]: "EV-AMB-001" has no prompt and is in no pack: left out'
    ]


def test_where_it_kept_all_of_them_elsewhere_the_default_pack_is_asked():
    text = '{"models": [{"model_id": "x.y"}],\n "scenarios": [{"id": "EV-AMB-001"}]}'
    config = config_of(text, "config.json")
    assert config.manifest.scenarios == load_pack()
    assert str(config.unused[-1]) == (
        "config.json line 2, scenarios: none of them can be asked: socratic-15 is asked instead"
    )


def test_an_entry_may_use_fields_of_both_shapes():
    text = """\
models:
- model_id: x.y
  limits: {concurrency: 2}
- id: reference/socratic
  cost_per_1k_input: 0.001
  cost_per_1k_output: 0.002
repeats: 2
"""
    one, other = config_of(text).manifest.models
    assert one.limits.concurrency == 2
    assert other.price == Price(input_per_million=Decimal(1), output_per_million=Decimal(2))


def test_the_fields_of_the_predecessor_are_unknown_where_no_model_has_a_model_id():
    text = "models: [reference/socratic]\nweekly_schedule: {}"
    assert mistakes_of(text) == [
        (
            "benchmark.yaml line 2, weekly_schedule: unknown field; there are `models`, "
            "`scenarios`, `system_prompt`, `parameters`, `repeats`, `stop_when`, "
            "`profile`, "
            "`use_llm_exploratory`, `student`, `deadline_hours`, `priority`, `budget`, `name`, "
            "`notes`, `prompts`, `occasion`, `length`, `weights`"
        ),
    ]


def test_a_budget_is_read_in_this_shape_too():
    text = (
        '{"models": [{"model_id": "x.y", "cost_per_1k_input": 1, "cost_per_1k_output": 2}],'
        ' "budget": 1.25}'
    )
    assert config_of(text, "config.json").manifest.budget == Decimal("1.25")
