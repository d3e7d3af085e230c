"""A tutor whose code changes behind one address, from the run to the verdict of its gate."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.e2e.changing_tutor import ASKS, TELLS, Tutor, changing_tutor


@pytest.fixture
async def tutor(tmp_path: Path) -> AsyncIterator[Tutor]:
    async with changing_tutor(tmp_path) as tutor:
        yield tutor


async def test_a_changed_tutor_is_asked_again_on_another_occasion(tutor: Tutor) -> None:
    main = tutor.config("main")
    assert (await tutor.command("run", main)).returncode == 0
    assert tutor.calls == 6

    tutor.says = TELLS
    again = await tutor.command("run", main)
    assert (again.returncode, tutor.calls) == (0, 6)
    assert "--again asks a tutor again whose code changed" in " ".join(again.stderr.split())
    stale = await tutor.command("gate", main, "--baseline", "main")
    assert stale.returncode == 1
    assert "the experiment is the baseline itself" in " ".join(stale.stdout.split())

    change = await tutor.command("run", main, "--occasion", "4f8e65e", "--set", "name=change")
    assert (change.returncode, tutor.calls) == (0, 12)
    for words in (("--occasion", "4f8e65e"), ("--set", "name=change")):
        told = await tutor.command("gate", main, *words, "--baseline", "main", "--max-drop", "0.1")
        assert told.returncode == 1, words
        assert "0.99 before, 0.32 now on 6 scenarios" in " ".join(told.stdout.split())

    tutor.says = ASKS
    mended = await tutor.command("run", main, "--again", "--set", "name=mended")
    assert (mended.returncode, tutor.calls) == (0, 18)
    assert "A new execution: --occasion 20" in mended.stderr
    newest = ("--set", "name=mended", "--baseline", "main", "--max-drop", "0.1")
    told = await tutor.command("gate", main, *newest)
    assert told.returncode == 0, told.stdout


async def test_a_name_stays_with_the_experiment_that_it_was_given_to(tutor: Tutor) -> None:
    await tutor.command("run", tutor.config("main"))
    renamed = await tutor.command("run", tutor.config("pr"))
    told = " ".join(renamed.stderr.split())
    assert "was made as 'main' and keeps that name: --again, or another --occasion" in told
    found = json.loads((await tutor.command("gate", "main", "--fail-under", "0", "--json")).stdout)
    assert found["experiment_name"] == "main"
    missing = await tutor.command("gate", "pr", "--fail-under", "0")
    assert (missing.returncode, "no experiment 'pr'" in missing.stderr) == (2, True)


async def test_fields_models_and_scenarios_are_changed_on_the_spot(tutor: Tutor) -> None:
    config = tutor.config("nightly", occasion="${NIGHT}")
    unset = await tutor.command("run", config)
    assert (unset.returncode, "${NIGHT} is not set" in unset.stderr) == (2, True), unset.stderr
    chosen = ("--scenario", "s1", "--scenario", "s4", "--scenario", "s5", "--limit", "2")
    words = ("run", config, *chosen, "--repeats", "2", "--set", "parameters.top_p=0.5")
    done = await tutor.command(*words, "--json", environ={"NIGHT": "2026-W48"})
    assert done.returncode == 0, done.stderr
    assert tutor.calls == 4
    experiment = json.loads(done.stdout)["leaderboard"]["experiments"][0]
    assert (experiment["occasion"], experiment["planned"]) == ("2026-W48", 4)
    gate = ("gate", *words[1:], "--occasion", "2026-W48", "--fail-under", "0.9")
    assert (await tutor.command(*gate)).returncode == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--set", "repeat=2"), "--set repeat"),
        (("--set", "repeats=two"), "--set repeats"),
        (("--set", "models=[]"), "cannot be set: --model chooses among them"),
        (("--set", "name.first=x"), "name is"),
        (("--set", "repeats"), "write --set repeats=1"),
        (("--model", "vllm/tuto"), 'there is no model "vllm/tuto"'),
        (("--limit", "0"), "0"),
        (("--occasion", "$NIGHT"), "the shell sets a variable in double quotes"),
        (("--set", "occasion=${HOME}"), "the shell sets a variable in double quotes"),
        (("--again", "--occasion", "x"), "take one of them"),
    ],
)
async def test_a_wrong_change_is_told_in_one_sentence(
    tutor: Tutor, words: tuple[str, ...], told: str
) -> None:
    wrong = await tutor.command("run", tutor.config("main"), *words)
    assert (wrong.returncode, told in wrong.stderr) == (2, True), wrong.stderr
    assert tutor.calls == 0


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "DATABASE_URL", "TUTOR_PAT", "MY_LLM"])
async def test_a_secret_is_no_part_of_a_name(tutor: Tutor, variable: str) -> None:
    model = {"id": "vllm/tutor", "base_url": tutor.address, "options": {"api_key_env": "MY_LLM"}}
    config = tutor.config("main", notes=f"x ${{{variable}}}", models=[model])
    wrong = await tutor.command("run", config, environ={variable: "s3cr3t"})
    assert (wrong.returncode, "may be a secret" in wrong.stderr) == (2, True), wrong.stderr
    assert "s3cr3t" not in wrong.stderr


async def test_a_name_from_the_command_line_is_no_variable(tutor: Tutor) -> None:
    done = await tutor.command(
        "run", tutor.config("main"), "--set", "name=feature/${HOME}", "--json"
    )
    assert json.loads(done.stdout)["leaderboard"]["experiments"][0]["name"] == "feature/${HOME}"


async def test_a_gate_on_github_annotates_and_writes_the_summary(tutor: Tutor) -> None:
    await tutor.command("run", tutor.config("main"))
    tutor.says = TELLS
    change = tutor.config("change", occasion="change")
    await tutor.command("run", change)
    summary = tutor.terminal.folder / "summary.md"
    gate = ("gate", change, "--baseline", "main", "--format", "github")
    told = await tutor.command(*gate, environ={"GITHUB_STEP_SUMMARY": str(summary)})
    assert told.returncode == 1
    assert told.stdout.startswith("::error title=vllm/tutor%3A overall falls by at most 0::")
    assert "### Where vllm/tutor fell: 6 scenarios, the 3 worst" in summary.read_text()


async def test_a_graded_configuration_can_be_checked(tutor: Tutor) -> None:
    tutor.says = "5"
    grader = {"id": "vllm/grader", "base_url": tutor.address, "options": {"stream": False}}
    config = tutor.config("graded", use_llm_exploratory={"model": grader})
    checked = await tutor.command("run", config, "--check")
    assert checked.returncode == 0, checked.stderr
    tutor.says = "A fine question."
    checked = await tutor.command("run", config, "--check")
    assert checked.returncode == 1
    assert "is not a whole number from 0 to 10" in " ".join(checked.stdout.split())
