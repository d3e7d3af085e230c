"""A grade is a whole number from 0 to 10; the graded text stays data."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.domain.experiment.manifest import Grader, Manifest, TutorModel
from socratic_bench.domain.grading import (
    INSTRUCTION,
    RUBRIC,
    grade_of,
    grading_run_id,
    message_of,
)
from socratic_bench.domain.identifiers import content_name, run_id
from socratic_bench.domain.run import is_side_run
from tests.contract.store.facts import an_experiment, with_grader

MODEL = TutorModel(id="vllm/grader", base_url="http://127.0.0.1:8000/v1")


@given(number=st.integers(0, 10), before=st.text(" \n\t"), after=st.text(" \n\t"))
def test_each_whole_number_of_the_scale_is_a_grade_in_both_forms(number, before, after):
    for form in (f"{number}", f'{{"exploratory": {number}}}', f'{{ "exploratory":{number} }}'):
        assert grade_of(before + form + after) == number / 10


@given(reply=st.text() | st.from_regex(r"[-+ .\d\"{}:a-z]{0,12}"))
def test_a_reply_has_a_grade_only_if_it_is_that_grade_and_nothing_else(reply):
    bare = re.sub(r"\s", "", reply)
    forms = {form: n / 10 for n in range(11) for form in (f"{n}", f'{{"exploratory":{n}}}')}
    assert grade_of(reply) in {None, forms.get(bare)}


@pytest.mark.parametrize(
    "reply",
    [
        "", "11", "-1", "7.5", "7.0", "7/10", "07", "1e1", "7 8", "7.", "seven", "٧", "Grade: 7",
        "```json\n7\n```", '"7"', "[7]", "true", "null", "NaN", '{"exploratory": "7"}',
        '{"exploratory": 7.5}', '{"exploratory": 7, "exploratory": 0}', '{"score": 7}',
        '{"exploratory": 7, "reason": "open"}', '{"exploratory": true}', "7\x00",
        "I was told to reply 10", "{" * 5_000, " " * 100_000 + "x",
    ],
)  # fmt: skip
def test_nothing_else_is_a_grade(reply):
    assert grade_of(reply) is None


@given(text=st.text())
def test_the_graded_text_cannot_end_the_string_that_quotes_it(text):
    first, _, quoted = message_of(text).partition("\n")
    assert first == "The response to grade, as a JSON string:"
    assert json.loads(quoted) == text
    assert "\n" not in quoted


def test_a_changed_rubric_needs_a_new_name():
    assert (RUBRIC, content_name("rubric", [INSTRUCTION, message_of("A?")])) == (
        "exploratory-1",
        "rubric-5dc87f4b8f625315",
    )


def test_a_grading_is_named_by_its_experiment_and_text_and_no_run_of_a_plan_is_a_grading():
    names = {grading_run_id(experiment, text) for experiment in "ab" for text in ("A?", "B?")}
    assert len(names) == 4
    assert all(map(is_side_run, names))
    assert not is_side_run(run_id("exp-0", "grading-x/y", "grading-", 1))


def test_all_that_decides_a_grade_is_in_the_graders_key_and_nothing_else():
    key = Grader(model=MODEL).key
    for change in (
        {"base_url": "http://127.0.0.1:8001/v1"},
        {"endpoint": "other"},
        {"id": "vllm/b"},
    ):
        assert Grader(model=MODEL.model_copy(update=change)).key != key
    assert Grader(model=MODEL, max_tokens=65).key != key
    assert Grader(model=MODEL.model_copy(update={"name": "Grader"})).key == key


def test_a_grader_changes_what_is_compared_and_no_question_to_a_tutor():
    plain = an_experiment()
    experiment = with_grader(plain, Grader(model=MODEL))
    others = plain, with_grader(plain, Grader(model=MODEL, max_tokens=65))
    for other in others:
        assert experiment.conditions_id != other.conditions_id
        assert experiment.experiment_id != other.experiment_id
    assert experiment.conversation_keys == plain.conversation_keys
    assert experiment.reuse_keys - plain.reuse_keys == {Grader(model=MODEL).key}
    assert "use_llm_exploratory" not in plain.manifest.model_dump_json()


def test_a_manifest_with_a_grader_needs_a_graded_profile():
    given = an_experiment().manifest.model_dump() | {"use_llm_exploratory": Grader(model=MODEL)}
    with pytest.raises(ValueError, match="needs a profile that ends with -llm"):
        Manifest.model_validate(given)
