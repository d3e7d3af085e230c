"""The example of a profile, installed as others would install it, and used by the real command."""

import json
import subprocess
import sys
from collections import defaultdict

import pytest

from socratic_bench.adapters.stores.sql.store import SqlStore
from tests.contract.store.adapters import opened
from tests.e2e.command import Terminal
from tests.integration.examples.conftest import EXAMPLES

COMMAND = [sys.executable, "-c", "from socratic_cli.cli import main; main()", "score", "-"]
TURN = {"student": "Hi", "tutor": "What do you mean?"}


pytestmark = pytest.mark.xdist_group("installed examples")


@pytest.mark.long
def test_it_keeps_its_promises_by_its_own_tests(installed):
    pytest_of_its_own = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        pytest_of_its_own,
        cwd=EXAMPLES / "profile",
        env=installed,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


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


async def test_counts_of_the_installed_profile_are_summed_in_the_cells_of_each_turn(
    installed, tmp_path
):
    terminal = Terminal(tmp_path, {"PYTHONPATH": installed["PYTHONPATH"]})
    follow_ups = ["Are you sure?", "Just tell me."]
    scenario = {"id": "s", "dimension": "student", "prompt": "Why?", "follow_ups": follow_ups}
    models = ["reference/socratic", "reference/lecturer"]
    plan = {"models": models, "scenarios": [scenario], "profile": "persistence-v1", "repeats": 4}
    config = terminal.write("plan.yaml", json.dumps(plan))
    for _ in range(2):  # the second one finds everything done
        done = terminal.run("run", config)
        assert done.returncode == 0, done.stderr
    assert terminal.run("verify").returncode == 0
    asked: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    async with opened(lambda: SqlStore.from_url(terminal.store)) as store:
        [experiment] = await store.experiments()
        cells = {
            (cell.key.model_id, cell.key.turn): {
                name: count for name, count in cell.counts.items() if "." not in name
            }
            for cell in await store.cells()
        }
        for turns in (await store.responses([run.run_id for run in experiment.runs()])).values():
            asks = "".join("?" if "?" in turn.text else "." for turn in turns)
            for turn in turns:
                asked[turn.run.model_id, turn.turn].append(asks[: turn.turn])
    assert len(cells) == len(asked) == 6
    for place, runs in asked.items():
        at_risk = [asks for asks in runs if "." not in asks[:-1]]
        lapsed = [asks for asks in at_risk if asks.endswith(".")]
        assert cells[place] == {"at_risk": len(at_risk), "lapsed": len(lapsed)}
    assert any(counts["lapsed"] for counts in cells.values())


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
