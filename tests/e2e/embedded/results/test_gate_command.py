"""A pipeline checks scores with `socratic-bench gate`, and shows the checks as tests."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree as ET

import pytest

from socratic_bench.planning.scenario_packs import load_pack
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
    assert re.search(r"overall is 0\.9\d+ \(at least 0\.\d\d\)", " ".join(good.stdout.split()))
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
        (("--fail-under", "gpt=0.5"), "has no model 'gpt'; it has: reference/lecturer"),
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
