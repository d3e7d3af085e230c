"""The examples of a provider and of a pack, installed as others would, and run by the command."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.examples.conftest import EXAMPLES

COMMAND = [sys.executable, "-c", "from socratic_cli.cli import main; main()"]
PLAN = """\
models: [{id: echo/last-words, options: {words: 3}}]
scenarios: first-programs
repeats: 2
"""


pytestmark = pytest.mark.xdist_group("installed examples")


def run(folder: Path, plan: str, env: dict[str, str], *options: str):
    (folder / "plan.yaml").write_text(plan)
    arguments = ["run", "plan.yaml", "--json", "--store", "sqlite:///results.db", *options]
    return subprocess.run(
        [*COMMAND, *arguments], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


@pytest.mark.long
def test_it_keeps_its_promises_by_its_own_tests(installed):
    pytest_of_its_own = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        pytest_of_its_own,
        cwd=EXAMPLES / "provider",
        env=installed,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_the_command_asks_the_installed_provider_the_installed_pack(installed, tmp_path):
    done = run(tmp_path, PLAN, installed)
    assert done.returncode == 0, done.stderr
    assert "all answered by this machine: they cost nothing" in done.stderr
    result = json.loads(done.stdout)
    (row,) = result["leaderboard"]["models"]
    assert (result["done"], result["failed"], result["model_calls"]) == (4, 0, 6)
    assert (row["model_id"], row["statuses"]) == ("echo/last-words", {"ok": 6})
    assert row["mean_visible_output_tokens"] == 5  # "You say: " and three words of the student
    assert set(row["dimensions"]) == {"student", "ambiguous"}


def test_a_wrong_option_of_the_provider_is_a_mistake_with_its_line(installed, tmp_path):
    done = run(tmp_path, PLAN.replace("words: 3", "words: 0"), installed)
    assert done.returncode == 2
    assert "plan.yaml line 1" in done.stderr
    assert "option words: must be 1 or more, not 0" in done.stderr


def test_without_the_distributions_provider_and_pack_are_unknown(tmp_path):
    done = run(tmp_path, PLAN, dict(os.environ))
    assert done.returncode == 2
    assert "unknown provider 'echo'; the providers are anthropic" in done.stderr
    assert '"first-programs" is neither a scenario pack (there are ' in done.stderr
