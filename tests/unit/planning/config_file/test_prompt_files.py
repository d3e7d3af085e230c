"""System prompts: the plan's and a model's own, written in the configuration or in a file."""

import os
import sys
from datetime import UTC, datetime

import pytest

from socratic_bench.domain.experiment.manifest import Limits, Manifest, TutorModel
from socratic_bench.planning.config_file.changes import Changes
from socratic_bench.planning.config_file.config import parse_config
from socratic_bench.planning.config_file.model_selection import LARGEST_PROMPT
from socratic_bench.providers.built_in import HttpOptions
from socratic_bench.providers.registry import account_scope
from tests.unit.planning.catalogue import FewProviders, config_of, mistakes_of

TWO_MODELS = """\
models:
- reference/socratic
- {id: reference/lecturer, system_prompt: PROMPT}
"""
OF_THE_PLAN = "models: [reference/socratic]\nsystem_prompt: PROMPT\n"
BOTH = pytest.mark.parametrize("text", [OF_THE_PLAN, TWO_MODELS], ids=["plan", "model"])
CIRCLE = (
    "cannot be read: Too many levels of symbolic links"
    if sys.version_info >= (3, 13)
    else "is not a path"
)
OUTSIDE = "is not below the folder of the configuration"
RIGHT = "`system_prompt: {file: prompts/tutor.txt}`"


def manifest_of(text, prompt, folder=None):
    return config_of(text.replace("PROMPT", prompt), base_folder=folder).manifest


def prompts_of(manifest):
    return [manifest.system_prompt_of(model) for model in manifest.models]


def test_a_model_is_told_its_own_prompt_and_another_one_that_of_the_plan():
    manifest = manifest_of(TWO_MODELS + "system_prompt: Ask.", "Tell.")
    assert prompts_of(manifest) == ["Ask.", "Tell."]


def test_a_prompt_of_a_model_is_another_plan_and_none_changes_no_plan():
    plain, own = manifest_of("models: [reference/socratic]", ""), manifest_of(TWO_MODELS, "Tell.")
    other = manifest_of(TWO_MODELS, "Lecture.")
    assert own.manifest_id != other.manifest_id
    assert own.conditions_id == plain.conditions_id
    assert "system_prompt" not in plain.models[0].model_dump(mode="json")


def test_the_same_prompt_is_the_same_question_wherever_it_is_written():
    def keys(text):
        experiment = config_of(text).experiment(datetime(2026, 3, 2, tzinfo=UTC))
        return set(experiment.conversation_keys.values())

    one = "models: [{id: reference/socratic, system_prompt: Ask.}]\n"
    assert keys(one) == keys("models: [reference/socratic]\nsystem_prompt: Ask.")
    assert keys(one) == keys(one + "system_prompt: Of no model.")
    assert not keys(one) & keys("models: [reference/socratic]")


@BOTH
@pytest.mark.parametrize("content", ["Ask.\nOnce.", "Ask.\r\nOnce.\r\n", "\ufeffAsk.\nOnce.\n\n"])
def test_a_file_says_the_same_as_its_content_written_out(tmp_path, text, content):
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "tutor.txt").write_text(content, newline="")
    from_file = manifest_of(text, "{file: prompts/tutor.txt}", tmp_path)
    assert prompts_of(from_file)[-1] == "Ask.\nOnce."
    assert from_file == manifest_of(text, r'"Ask.\nOnce."')


@BOTH
@pytest.mark.parametrize(
    ("prompt", "problem"),
    [
        ("file://tutor.txt", f"is the address of a file, not a prompt; write {RIGHT}"),
        ("file:tutor.txt", f"is the address of a file, not a prompt; write {RIGHT}"),
        ("{path: tutor.txt}", f"must be text, or the path of a file: {RIGHT}"),
        ("{file: tutor.txt, x: 1}", f"must be text, or the path of a file: {RIGHT}"),
        ("{file: 3}", f"must be text, or the path of a file: {RIGHT}"),
        ("{file: none.txt}", '"none.txt" in FOLDER: there is no such file'),
        ("{file: .}", '"." in FOLDER: is a folder, not a file'),
        ("{file: empty.txt}", '"empty.txt" in FOLDER: is empty'),
        ("{file: large.txt}", '"large.txt" in FOLDER: is larger than 100 kB'),
        ("{file: pipe}", '"pipe" in FOLDER: is a device or a pipe, not a file'),
        ("{file: ../out.txt}", f'"../out.txt" in FOLDER: {OUTSIDE}'),
        ("{file: /etc/hostname}", f'"/etc/hostname" in FOLDER: {OUTSIDE}'),
        ("{file: link.txt}", f'"link.txt" in FOLDER: {OUTSIDE}'),
        ("{file: circle}", f'"circle" in FOLDER: {CIRCLE}'),
        (r'{file: "a\0"}', None),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_the_prompt_is_a_mistake_at_its_place(
    tmp_path, text, prompt, problem
):
    folder = tmp_path / "benchmark"
    folder.mkdir()
    (tmp_path / "out.txt").write_text("Ask.")
    (folder / "link.txt").symlink_to(tmp_path / "out.txt")
    (folder / "circle").symlink_to(folder / "circle")
    (folder / "empty.txt").write_text("\n \n")
    (folder / "large.txt").write_text("x" * (LARGEST_PROMPT + 1))
    os.mkfifo(folder / "pipe")
    mistakes = mistakes_of(text.replace("PROMPT", prompt), base_folder=folder)
    place = "line 2, system_prompt" if text == OF_THE_PLAN else "line 3, models[1].system_prompt"
    if problem is None:
        assert "U+0000" in mistakes[0]
    else:
        assert mistakes == [f"benchmark.yaml {place}: {problem.replace('FOLDER', str(folder))}"]


@BOTH
def test_text_from_elsewhere_may_name_no_file(text):
    (mistake,) = mistakes_of(text.replace("PROMPT", "{file: tutor.txt}"))
    assert mistake.endswith(": a file cannot be read from here: write the prompt out in its place")


def test_who_writes_prompt_is_led_to_system_prompt():
    assert mistakes_of("models:\n- {id: reference/socratic, prompt: Ask.}\nprompt: Ask.") == [
        "benchmark.yaml line 2, models[0].prompt: unknown field; did you mean `system_prompt`?",
        "benchmark.yaml line 3, prompt: unknown field; did you mean `system_prompt`?",
    ]


MATRIX = """\
models: [{id: reference/socratic, name: Asker}, reference/lecturer]
prompts:
  ask: {file: ask.txt}
  none: ""
"""


def test_each_model_is_asked_under_each_prompt_as_a_model_of_its_own(tmp_path):
    (tmp_path / "ask.txt").write_text("Ask.\n")
    manifest = config_of(MATRIX, base_folder=tmp_path).manifest
    assert [(each.id, each.display_name, each.own_id) for each in manifest.models] == [
        ("reference/socratic@ask", "Asker@ask", "reference/socratic"),
        ("reference/socratic@none", "Asker@none", "reference/socratic"),
        ("reference/lecturer@ask", "reference/lecturer@ask", "reference/lecturer"),
        ("reference/lecturer@none", "reference/lecturer@none", "reference/lecturer"),
    ]
    assert prompts_of(manifest) == ["Ask.", "", "Ask.", ""]
    assert Manifest.model_validate_json(manifest.model_dump_json()) == manifest


def test_a_provider_hears_the_name_and_the_limits_of_the_model_alone():
    model = TutorModel(id="openai/gpt@2", limits=Limits(requests_per_minute=60))
    asks, tells = model.under("ask", "Ask."), model.under("tell", "Tell.")
    assert HttpOptions().name_at_service(asks) == "gpt@2"
    assert account_scope(asks) == account_scope(tells) == account_scope(model)


def test_a_model_is_chosen_with_all_of_its_prompts_by_its_own_id(tmp_path):
    (tmp_path / "ask.txt").write_text("Ask.")
    for chosen, kept in (("reference/lecturer", 2), ("Asker@ask", 1)):
        changes = Changes(models=(chosen,))
        config = parse_config(
            MATRIX, name="m", base_folder=tmp_path, catalogue=FewProviders(), changes=changes
        )
        assert len(config.manifest.models) == kept


@pytest.mark.parametrize(
    ("fields", "mistake"),
    [
        ("prompts: {}", "prompts: must be a mapping of names to prompts, not a mapping"),
        ("prompts: {a b: Ask.}", "the name of a prompt has letters, digits, dots and hyphens al"),
        ("prompts: {a: 3}", "prompts.a: must be text, not 3"),
        ("prompts: {a: {file: ../x}}", "prompts.a: a file cannot be read from here"),
        ("prompts: {a: Ask., b: Ask.}", "prompts.b: has the words of another prompt"),
        ("prompts: {a: Ask.}\nsystem_prompt: Ask.", "system_prompt: is no prompt of a model: make"),
    ],
)  # fmt: skip
def test_a_wrong_prompt_of_a_matrix_is_one_mistake_at_its_place(fields, mistake):
    (found,) = mistakes_of(f"models: [reference/socratic]\n{fields}")
    assert mistake in found


@pytest.mark.parametrize(
    ("model", "mistake"),
    [
        ("{id: bedrock/x, system_prompt: Tell.}", "system_prompt: is a prompt beside those of"),
        ("{id: bedrock/x, prompt: a}", "prompt: unknown field; did you mean `system_prompt`?"),
        (f"bedrock/{'x' * 192}", "is longer than 200 characters with the name of a prompt"),
    ],
)
def test_a_model_that_fits_no_matrix_is_one_mistake(model, mistake):
    (found,) = mistakes_of(f"models: [{model}]\nprompts: {{a: Ask.}}")
    assert mistake in found
