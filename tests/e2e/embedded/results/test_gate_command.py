"""A pipeline checks scores with `socratic-bench gate`, and shows the checks as tests."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from socratic_bench.adapters.clock import SystemClock
from socratic_bench.addresses import open_store
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.planning.config_file.config import read_config
from socratic_bench.planning.config_file.scenario_selection import load_pack
from socratic_bench.planning.model_catalogue import RegisteredModels
from tests.e2e.command import Terminal

CONFIG = """
name: {name}
models:
  - reference/lecturer
  - id: replay/{answers}
    name: "Tutor <b> & co."
repeats: 1
"""
ASKING = "What might you consider first?"
TELLING = "You should always do it."


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    """A folder with two experiments, in which the same recorded tutor asks, and then tells."""
    terminal = Terminal(tmp_path_factory.mktemp("gate"))
    for name, text in (("main", ASKING), ("change", TELLING)):
        lines = [
            {"scenario_id": scenario.id, "text": text, "output_tokens": 40 + place}
            for place, scenario in enumerate(load_pack())
        ]
        terminal.write("tutor.jsonl", "\n".join(map(json.dumps, lines)))
        config = terminal.write(f"{name}.yaml", CONFIG.format(name=name, answers="tutor.jsonl"))
        done = terminal.run("run", config)
        assert done.returncode == 0, done.stderr
    return terminal


def test_a_gate_tells_a_good_experiment_from_one_that_fell(terminal: Terminal) -> None:
    good = terminal.run(
        "gate", "main", "--fail-under", "0.9", "--min-coverage", "0.9", "--junit", "good.xml"
    )
    assert good.returncode == 0, good.stderr
    assert "2 checks, none failed." in good.stderr
    assert re.search(r"overall is 0\.9\d+ \(interval from 0\.\d\d\)", " ".join(good.stdout.split()))
    assert "reference/lecturer" not in good.stdout, "reference tutors are checked by name alone"

    fell = terminal.run(
        "gate", "change.yaml", "--baseline", "main", "--max-drop", "0.05", "--junit", "fell.xml"
    )
    assert fell.returncode == 1
    assert "FAILED" in fell.stdout
    case = ET.parse(terminal.folder / "fell.xml").find(".//testcase")
    assert case is not None
    assert case.attrib["classname"] == "replay/tutor.jsonl"
    failure = case.find("failure")
    assert failure is not None
    assert "on 15 scenarios" in failure.attrib["message"]
    suite = ET.parse(terminal.folder / "good.xml").find("testsuite")
    assert suite is not None
    assert (suite.attrib["tests"], suite.attrib["failures"]) == ("2", "0")

    itself = terminal.run("gate", "main", "--baseline", "main", "--json")
    assert itself.returncode == 0
    (check,) = json.loads(itself.stdout)["checks"]
    assert (check["passed"], "nothing has changed" in check["detail"]) == (True, True)


def test_a_threshold_of_a_model_replaces_that_of_all(terminal: Terminal) -> None:
    both = terminal.run(
        "gate", "main", "--json", "--fail-under", "0.5", "--fail-under", "reference/lecturer=0.9"
    )
    assert both.returncode == 1
    passed = {each["model_id"]: each["passed"] for each in json.loads(both.stdout)["checks"]}
    assert passed == {"replay/tutor.jsonl": True, "reference/lecturer": False}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "nothing to check"),
        (("--fail-under", "high"), "write 0.6, or MODEL=0.6"),
        (("--fail-under", "1.5"), "no score from 0 to 1"),
        (("--fail-under", "0.5", "--fail-under", "0.6"), "one SCORE for all models"),
        (("--fail-under", "gpt=0.5"), "has no model 'gpt'; there are: "),
        (("--max-drop", "0.1"), "--max-drop needs --baseline"),
        (("--baseline", "nowhere"), "there is no experiment 'nowhere'"),
    ],
)
def test_a_wrong_option_is_told_in_one_sentence(
    terminal: Terminal, options: tuple[str, ...], told: str
) -> None:
    wrong = terminal.run("gate", "main", *options)
    assert (wrong.returncode, told in wrong.stderr) == (2, True), wrong.stderr


def test_a_configuration_that_was_not_run_names_the_command(terminal: Terminal) -> None:
    other = terminal.write("other.yaml", "models: [reference/hedger]\n")
    missing = terminal.run("gate", other, "--fail-under", "0.5")
    assert missing.returncode == 2
    assert "socratic-bench run" in missing.stderr


KNOWN = RegisteredModels(None)


async def registered(store_url: str, experiment: Experiment) -> None:
    """Plan an experiment and begin none of its runs."""
    store = open_store(store_url)
    await store.prepare()
    await store.register(experiment)
    await store.close()


QUESTION = "What might you consider first about this question, and why do you think so?"
LECTURE = "You should always do this, and never that."


def ran(terminal: Terminal, name: str, answers: dict[str, str], prompts: dict[str, str]) -> Path:
    """Run an experiment of a recorded tutor with these answers; returns its configuration."""
    lines = [
        {"scenario_id": scenario, "repeat": repeat, "text": text, "output_tokens": 15 + place}
        for place, (scenario, text) in enumerate(answers.items())
        for repeat in (1, 2)
    ]
    terminal.write("tutor.jsonl", "\n".join(map(json.dumps, lines)))
    scenarios = [
        {"id": id_, "dimension": "student", "prompt": prompt} for id_, prompt in prompts.items()
    ]
    plan = {"name": name, "models": ["replay/tutor.jsonl"], "scenarios": scenarios, "repeats": 2}
    config = terminal.write(f"{len(list(terminal.folder.iterdir()))}.json", json.dumps(plan))
    done = terminal.run("run", config)
    assert done.returncode == 0, done.stderr
    return config


PROMPTS = {f"s0{number}": f"Question {number}?" for number in range(10)}
CHANGED = {id_: prompt + " Now." if id_ > "s01" else prompt for id_, prompt in PROMPTS.items()}
FELL = {id_: LECTURE if id_ > "s01" else QUESTION for id_ in PROMPTS}


def test_a_fall_on_changed_or_deleted_scenarios_does_not_pass(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    ran(terminal, "main", dict.fromkeys(PROMPTS, QUESTION), PROMPTS)
    kept = {id_: PROMPTS[id_] for id_ in ("s00", "s01")}
    for name, prompts in (("changed", CHANGED), ("deleted", kept)):
        config = ran(terminal, name, FELL, prompts)
        told = terminal.run("gate", config, "--baseline", "main", "--max-drop", "0.05", "--json")
        assert told.returncode == 1
        report = json.loads(told.stdout)
        [shared, fall] = report["checks"][-2:]
        assert not shared["passed"]
        assert shared["detail"].startswith("2 of 10 scenarios; 8 of the baseline's are missing")
        assert "fewer than 5 scenarios do not tell" in fall["detail"]
        words = ("gate", config, "--baseline", "main", "--max-drop", "0.05", "--min-shared", "0.2")
        assert terminal.run(*words, "--allow-reused").returncode == 0


def test_the_baseline_is_the_newest_of_its_name_and_figures_show_what_differs(
    tmp_path: Path,
) -> None:
    terminal = Terminal(tmp_path)
    ran(terminal, "main", dict.fromkeys(PROMPTS, LECTURE), PROMPTS)
    long = QUESTION.removesuffix("?") + " indeed?"
    ran(terminal, "main", dict.fromkeys(PROMPTS, QUESTION), {**PROMPTS, "s10": "Question 10?"})
    answers = dict.fromkeys(PROMPTS, long) | {"s00": LECTURE}
    config = ran(terminal, "change", answers, {**PROMPTS, "s10": "Question 10?", "s11": "Why?"})

    def fall(*words: str) -> tuple[bool, str, str]:
        told = terminal.run("gate", config, "--json", *words)
        check = json.loads(told.stdout)["checks"][-1]
        return check["passed"], check["name"], check["detail"]

    passed, name, detail = fall("--baseline", "main", "--max-drop", "0.0655")
    assert (passed, name) == (False, "overall falls by at most 0.0655")
    assert re.search(r"on 10 scenarios: −0\.\d{2,5} \(", detail)
    passed, _, detail = fall("--baseline", "main~1", "--max-drop", "0")
    assert passed
    assert ": +0." in detail
    missing = terminal.run("gate", config, "--baseline", "main~2")
    assert (missing.returncode, "'main~2'" in missing.stderr) == (2, True)


def test_reused_answers_alone_and_an_unfinished_experiment_do_not_pass(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    ran(terminal, "main", dict.fromkeys(PROMPTS, QUESTION), PROMPTS)
    first = json.loads((tmp_path / "1.json").read_text())
    again = terminal.write("again.json", json.dumps({**first, "name": "again", "repeats": 1}))
    assert "reused" in terminal.run("run", again).stderr
    told = terminal.run("gate", again, "--fail-under", "0.9")
    assert told.returncode == 1
    assert "10 of 10 answers are those of an earlier experiment" in " ".join(told.stdout.split())
    assert terminal.run("gate", again, "--fail-under", "0.9", "--allow-reused").returncode == 0
    fresh = terminal.run("gate", "main", "--fail-under", "0.9", "--fresh-only")
    assert fresh.returncode == 0

    config = read_config(terminal.write("more.json", json.dumps({**first, "repeats": 4})), KNOWN)
    planned = config.experiment(SystemClock().now())
    asyncio.run(registered(terminal.store, planned))
    words = ("gate", planned.experiment_id, "--min-coverage", "0")
    told = terminal.run(*words)
    assert told.returncode == 1
    assert "0 of 40 runs have ended" in " ".join(told.stdout.split())
    assert terminal.run(*words, "--allow-unfinished").returncode == 0
