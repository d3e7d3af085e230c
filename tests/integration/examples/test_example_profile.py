"""The example of a profile, installed as others would install it, and used by the real command."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[3] / "examples" / "profile"
COMMAND = [sys.executable, "-c", "from socratic_cli.cli import main; main()", "score", "-"]
TURN = {"student": "Hi", "tutor": "What do you mean?"}


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> dict[str, str]:
    """The environment of a process that has the example installed."""
    target = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(target), str(EXAMPLE)], check=True)
    return {**os.environ, "PYTHONPATH": str(target)}


def test_the_command_scores_by_the_installed_profile(installed):
    records = [
        {"text": "Which tasks?", "student_message": "many tasks?"},
        {"text": "Which tasks?", "student_message": "many tasks?", "earlier_turns": [TURN]},
    ]
    done = subprocess.run(
        [*COMMAND, "--profile", "uptake-v1", "--format", "jsonl"],
        input="".join(json.dumps(record) + "\n" for record in records),
        env=installed,
        capture_output=True,
        text=True,
        check=True,
    )
    first, second = map(json.loads, done.stdout.splitlines())
    assert (first["uptake"], first["asking"], first["overall"]) == (None, 1.0, 1.0)
    assert (second["uptake"], second["overall"]) == (0.5, 0.75)
    assert second["evidence"]["facts"]["uptake"]["word"] == "takes up"


def test_without_the_distribution_the_profile_is_unknown():
    done = subprocess.run(
        [*COMMAND, "--profile", "uptake-v1"],
        input="Why?",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "unknown scorer profile 'uptake-v1'; known: socratic-v1" in done.stderr
