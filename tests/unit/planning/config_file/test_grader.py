"""The grader of a configuration is read and checked as a model under test is."""

import pytest

from socratic_bench.domain.grading import RUBRIC
from socratic_bench.planning.estimate import estimate
from tests.unit.planning.catalogue import config_of, mistakes_of

MODELS = "models: [reference/socratic]\n"
GRADER = MODELS + "use_llm_exploratory: {model: bedrock/grader}\n"
KEYED = "models: [{id: bedrock/x, options: {api_key_env: A_KEY}}]\n"
PRICED = """\
models: [{id: reference/socratic, price: {input_per_million: 0, output_per_million: 0}}]
budget: 1
use_llm_exploratory: {model: %s}
"""


def test_a_grader_is_an_id_or_a_mapping_and_makes_the_profile_a_graded_one():
    manifest = config_of(GRADER).manifest
    grader = manifest.use_llm_exploratory
    assert (grader.model.id, grader.max_tokens, grader.rubric) == ("bedrock/grader", 64, RUBRIC)
    assert manifest.profile == "socratic-v1-llm"
    written = "use_llm_exploratory: {model: {id: bedrock/grader}, max_tokens: 64}\n"
    others = (
        MODELS + written,
        GRADER + "profile: socratic-v1-llm",
        GRADER + "profile: socratic-v1",
    )
    assert {config_of(text).manifest.manifest_id for text in others} == {manifest.manifest_id}


def test_no_grader_is_as_if_the_field_were_missing():
    empty = config_of(MODELS + "use_llm_exploratory: null").manifest
    assert empty.manifest_id == config_of(MODELS).manifest.manifest_id


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        (MODELS + "use_llm_exploratory: true", "line 2, use_llm_exploratory: must be a mapping"),
        (MODELS + "use_llm_exploratory: {}", "line 2, use_llm_exploratory.model: is missing"),
        (
            MODELS + "use_llm_exploratory: {model: gpt-4}",
            "line 2, use_llm_exploratory.model: must be `provider/name`",
        ),
        (
            MODELS + "use_llm_exploratory: {model: openai/x}",
            "line 2, use_llm_exploratory.model: there is no provider openai",
        ),
        (
            MODELS + "use_llm_exploratory: {model: reference/socratic}",
            "line 2, use_llm_exploratory.model: a reference tutor answers from fixed texts",
        ),
        (
            MODELS + "use_llm_exploratory: {model: {id: bedrock/x, system_prompt: Be kind.}}",
            "the rubric is the system prompt of a grader: leave out system_prompt",
        ),
        (
            MODELS + "use_llm_exploratory: {model: {id: bedrock/x, parameters: {top_p: 1}}}",
            "a grader has max_tokens beside its model: leave out parameters",
        ),
        (
            MODELS + "use_llm_exploratory: {model: bedrock/x, rubric: mine}",
            "line 2, use_llm_exploratory.rubric: ",
        ),
        (
            MODELS + "use_llm_exploratory: {model: bedrock/x, maxtokens: 9}",
            "line 2, use_llm_exploratory.maxtokens: unknown field; did you mean `max_tokens`?",
        ),
        (GRADER + "profile: socratic-v2", "line 3, profile: profile socratic-v2 has no vector"),
        (
            MODELS + "profile: socratic-v1-llm",
            "line 2, profile: needs a model that grades: use_llm_exploratory: {model: ",
        ),
        (PRICED % "bedrock/x", "bedrock/x has none"),
        (
            MODELS + "use_llm_exploratory: {model: {id: bedrock/x, context_tokens: 600}}",
            "model bedrock/x: its context_tokens of 600 leave no room",
        ),
        (
            KEYED + "use_llm_exploratory: {model: bedrock/x}",
            "line 2, use_llm_exploratory.model: model bedrock/x has another api_key_env",
        ),
    ],
)
def test_a_mistake_about_the_grader_is_told_at_its_place(text, mistake):
    [told] = mistakes_of(text)
    assert mistake in told


def test_the_estimate_counts_a_grading_for_each_response():
    price = "{id: bedrock/x, price: {input_per_million: 1, output_per_million: 4}}"
    manifest = config_of(PRICED % price).manifest
    estimated = estimate(manifest, answered=5)
    assert (estimated.grader.calls, estimated.calls) == (45 + 5, 45 + 50)
    assert estimated.cost == estimated.grader.cost
    assert 0 < estimated.cost.likely < estimated.cost.at_most
    assert manifest.has_prices
