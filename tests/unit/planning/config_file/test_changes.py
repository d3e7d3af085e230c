"""Options of the command choose a part of a configuration, as if the file said so."""

import pytest

from socratic_bench.domain.scenario import LONGEST_NAME
from socratic_bench.planning.config_file.changes import Changes
from tests.unit.planning.catalogue import config_of, mistakes_of

WHOLE = """\
name: main
models: [{id: reference/socratic, name: asker (ask)}, reference/lecturer]
scenarios: [student-bigger-fraction, student-empty-lines, ethical-handball]
weights: {ethical: {interrogative: 2}}
repeats: 2
"""
PART = Changes({"repeats": "1"}, ["asker (ask)"], ["ethical-handball", "It works on some files"], 1)


def test_a_part_is_the_experiment_that_a_file_with_it_alone_would_be():
    part, alone = config_of(WHOLE, changes=PART), config_of(WHOLE.replace(", ref", "] # ref"))
    one = alone.manifest.model_copy(
        update={"scenarios": alone.manifest.scenarios[1:2], "repeats": 1}
    )
    assert part.manifest.manifest_id == one.manifest_id
    assert part.weighted_profile == alone.weighted_profile


def test_a_part_takes_no_name_from_the_whole_experiment_and_a_note_says_so():
    part = config_of(WHOLE, changes=PART)
    told = "1 of 2 models, 1 of 3 scenarios, 1 of 2 repeats"
    assert part.manifest.name == f"main ({told})"
    (note,) = map(str, part.unused)
    assert note == (
        f"{told}: an experiment of its own, which shares its answers with the whole one; "
        "its name says so"
    )
    whole = config_of(WHOLE, changes=Changes({"repeats": "3"}, most_scenarios=3))
    assert (whole.manifest.name, whole.unused) == ("main", ())
    named = config_of(WHOLE, changes=Changes({"name": "pr"}, most_scenarios=1))
    assert named.manifest.name == "pr"
    whole_name = "m" * LONGEST_NAME
    long = config_of(WHOLE.replace("main", whole_name), changes=PART).manifest.name or ""
    assert (len(long), long[-len(told) - 2 :]) == (LONGEST_NAME, f"({told})")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (Changes(models=["asker (as"]), '--model: there is no model "asker (as"; did you mean "'),
        (Changes(models=["x"]), '"x"; there are: "reference/socratic", "asker (ask)", "reference/'),
        (Changes(scenarios=["empty-lines"]), 'did you mean "student-empty-lines"?'),
        (Changes({"repeats": "x"}), '--set repeats: must be a whole number, not "x"'),
        (Changes({"scenarios": "[]"}), "--set scenarios: cannot be set: --scenario chooses"),
    ],
)
def test_a_wrong_choice_names_the_option_and_the_likely_one(changes: Changes, told: str):
    (sentence,) = mistakes_of(WHOLE, changes=changes)
    assert told in sentence


def test_variables_stand_where_a_plan_may_hold_them():
    text = """\
name: ${BRANCH:-local} ${NIGHT:-}x
system_prompt: Ask about ${NIGHT}.
models:
- reference/${TUTOR}
- {id: "reference/${TUTOR}@2", name: "${TUTOR}", base_url: "${T_URL}/v1", system_prompt: '$${A}'}
use_llm_exploratory: {model: "bedrock/${GRADER:-haiku}"}
"""
    values = {"NIGHT": "n1", "TUTOR": "hedger", "T_URL": "http://127.0.0.1"}
    plan = config_of(text, variables=values).manifest
    first, second = plan.models
    assert (plan.name, plan.system_prompt) == ("local n1x", "Ask about ${NIGHT}.")
    assert (first.id, second.id, second.name) == (
        "reference/hedger",
        "reference/hedger@2",
        "hedger",
    )
    assert (second.base_url, second.system_prompt) == ("http://127.0.0.1/v1", "$${A}")
    assert plan.use_llm_exploratory
    assert plan.use_llm_exploratory.model.id == "bedrock/haiku"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("occasion: ${NIGHT}", "line 2, occasion: ${NIGHT} is not set in the environment"),
        ("models: ['reference/${M}']", "line 2, models[0]: ${M} is not set in the environment"),
        ("models: [{id: reference/x, name: '${A_KEY:-x}'}]", "${A_KEY} may be a secret, and would"),
        ("models: [{id: reference/x, name: '${A_URL}'}]", "${A_URL} may be a secret, and would"),
        (
            "models: [{id: reference/x, options: {extra_body: {user: ['${USER}']}}}]",
            (
                "line 2, models[0].options.extra_body.user[0]: ${USER} is not read here: variables "
                "stand in name, notes, occasion and a model's id, name, base_url"
            ),
        ),
    ],
)
def test_a_variable_is_never_stored_as_its_name_nor_with_a_secret(line: str, told: str):
    others = "" if line.startswith("models") else "models: [reference/x]"
    (sentence,) = mistakes_of(f"{others}\n{line}", variables={"USER": "ann", "A_KEY": "1"})
    assert told in sentence
