"""Weights in a configuration: the same answers and scores, read by other weights."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.command import Terminal

CONFIG = """
models: [reference/socratic, reference/hedger]
repeats: 1
"""
WEIGHTS = "weights: {student: {interrogative: 2}}\n"
NAME = "socratic-v1+w-f16302735420"
SENTENCE = f"{NAME} is socratic-v1 with the weights student: interrogative 2; all others stay."


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    """A folder in which a configuration was run, and then run again with weights."""
    folder: Path = tmp_path_factory.mktemp("weights")
    terminal = Terminal(folder)
    plain = terminal.run("run", terminal.write("plain.yaml", CONFIG))
    assert plain.returncode == 0, plain.stderr
    assert NAME not in plain.stdout
    weighed = terminal.run("run", terminal.write("weighed.yaml", CONFIG + WEIGHTS))
    assert weighed.returncode == 0, weighed.stderr
    assert "0 calls made" in weighed.stderr
    assert SENTENCE in " ".join(weighed.stdout.split())
    return terminal


def overall_of(terminal: Terminal, *arguments: str) -> dict[str, float]:
    done = terminal.run("leaderboard", "--format", "json", *arguments)
    assert done.returncode == 0, done.stderr
    return {each["model_id"]: each["overall_score"] for each in json.loads(done.stdout)["models"]}


def test_the_leaderboard_is_read_by_either_profile(terminal: Terminal) -> None:
    plain, weighed = overall_of(terminal), overall_of(terminal, "--profile", NAME)

    # The hedger seldom asks: interrogative counts more, so it falls.
    assert weighed["reference/hedger"] < plain["reference/hedger"] - 0.01
    both = terminal.run("leaderboard", "--profile", "socratic-v1", "--profile", NAME)
    assert both.returncode == 0, both.stderr


def test_comparison_gate_and_export_take_the_profile(terminal: Terminal) -> None:
    hedger = overall_of(terminal, "--profile", NAME)["reference/hedger"]
    compared = terminal.run("compare", "reference/socratic", "reference/hedger", "--profile", NAME)
    assert SENTENCE in " ".join((compared.stdout + compared.stderr).split())

    least = f"reference/hedger={hedger + 0.001:.4f}"
    # A configuration with weights is checked by them.
    for arguments, code in (
        (("weighed.yaml",), 1),
        (("plain.yaml",), 0),
        (("plain.yaml", "--profile", NAME), 1),
    ):
        done = terminal.run("gate", *arguments, "--fail-under", least)
        assert done.returncode == code, done.stderr
    experiment = json.loads(terminal.run("leaderboard", "--format", "json").stdout)["experiments"]
    exported = terminal.run("export", experiment[0]["experiment_id"], "--profile", NAME)
    rows = [json.loads(line) for line in exported.stdout.splitlines()]
    assert {row["profile"] for row in rows} == {NAME}
    [student, *_] = [row for row in rows if row["dimension"] == "student"]
    vectors = student["verbosity"] + student["exploratory"] + 2 * student["interrogative"]
    assert student["overall"] == pytest.approx(vectors / 4)


def test_rescoring_is_not_needed(terminal: Terminal) -> None:
    experiment = json.loads(terminal.run("leaderboard", "--format", "json").stdout)["experiments"]

    done = terminal.run("rescore", experiment[0]["experiment_id"], "--profile", NAME)

    assert done.returncode != 0
    assert "reads the scores of socratic-v1" in done.stderr
