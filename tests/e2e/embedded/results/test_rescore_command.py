"""`socratic-bench rescore` in one process: another profile's scores beside those of the run."""

import json
import signal
from contextlib import closing
from sqlite3 import connect

import pytest

from tests.waiting import PATIENCE

CONFIG = """
name: first
models: [reference/socratic, reference/lecturer, reference/faulty]
scenarios:
  - {id: one, dimension: student, prompt: "What is 3 x 4?", follow_ups: ["So 12?"]}
  - {id: two, dimension: ethical, prompt: "May I?"}
repeats: 5
"""


@pytest.fixture
def run(terminal):
    done = terminal.run("run", terminal.write("b.yaml", CONFIG))
    assert done.returncode == 0, done.stderr
    return terminal


def cells(terminal, profile):
    with closing(connect(terminal.database, timeout=PATIENCE)) as database:
        return database.execute(
            "SELECT model_id, scenario_id, turn, responses, runs_ended, record FROM cells"
            " WHERE profile = ? ORDER BY 1, 2, 3",
            [profile],
        ).fetchall()


def counted(terminal, profile):
    """What the cells of a profile count, without scores."""
    return [row[:5] for row in cells(terminal, profile)]


def calls(terminal):
    with closing(connect(terminal.database, timeout=PATIENCE)) as database:
        return database.execute("SELECT sum(calls) FROM calls").fetchone()


def test_a_rescored_experiment_has_both_profiles_and_called_no_model(run):
    own, called = cells(run, "socratic-v1"), calls(run)
    done = run.run("rescore", "first", "--profile", "socratic-v2")
    assert done.returncode == 0, done.stderr
    assert "no model was called" in done.stderr
    assert "--profile socratic-v1 --profile socratic-v2" in done.stderr
    assert cells(run, "socratic-v1") == own
    assert counted(run, "socratic-v2") == counted(run, "socratic-v1")
    assert calls(run) == called
    assert run.run("verify").returncode == 0


def test_a_second_rescoring_adds_nothing(run):
    first = json.loads(run.run("rescore", "first", "--profile", "socratic-v2", "--json").stdout)
    scored = cells(run, "socratic-v2")
    second = json.loads(run.run("rescore", "first", "--profile", "socratic-v2", "--json").stdout)
    assert first["runs"] == second["already_scored"] == 30
    assert (second["runs"], second["responses"], second["failures"]) == (0, 0, 0)
    assert cells(run, "socratic-v2") == scored


def test_a_killed_rescoring_goes_on_where_it_was(run):
    with run.started("rescore", "first", "--profile", "socratic-v2") as rescoring:
        while rescoring.poll() is None and not cells(run, "socratic-v2"):
            pass
        rescoring.send_signal(signal.SIGKILL)
        rescoring.wait(PATIENCE)
    assert run.run("rescore", "first", "--profile", "socratic-v2").returncode == 0
    assert counted(run, "socratic-v2") == counted(run, "socratic-v1")
    assert run.run("verify").returncode == 0


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("first", "--profile", "socratic-v9"), "known: socratic-v1, socratic-v2"),
        (("nowhere", "--profile", "socratic-v2"), "there is no experiment 'nowhere'"),
    ],
)
def test_wrong_names_are_one_sentence(run, words, named):
    done = run.run("rescore", *words)
    assert done.returncode == 2
    assert named in done.stderr


def test_a_missing_store_is_one_sentence(terminal):
    done = terminal.run("rescore", "first", "--profile", "socratic-v2")
    assert done.returncode == 2
    assert "run a benchmark first" in done.stderr
    assert not terminal.database.exists()


def test_two_profiles_stand_side_by_side_in_a_table_and_in_json(run):
    run.run("rescore", "first", "--profile", "socratic-v2")
    both = ("--profile", "socratic-v1", "--profile", "socratic-v2")
    table = run.run("leaderboard", *both).stdout
    first, second = json.loads(run.run("leaderboard", *both, "--format", "json").stdout)
    alone = json.loads(
        run.run("leaderboard", "--profile", "socratic-v2", "--format", "json").stdout
    )
    assert table.splitlines()[0].split()[:3] == ["model", "rank", "socratic-v1"]
    assert "compare ranks, not figures" in table
    assert (first["profile"], second) == ("socratic-v1", alone)
    refused = run.run("leaderboard", *both, "--format", "csv")
    assert (refused.returncode, "side by side" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    "words",
    [
        ("leaderboard",),
        ("compare", "reference/socratic", "reference/lecturer"),
        ("transcripts", "first"),
        ("export", "first"),
        ("report", "first"),
    ],
)
def test_figures_by_a_profile_without_scores_name_the_command_that_makes_them(run, words):
    early = run.run(*words, "--profile", "socratic-v2")
    assert early.returncode == 2
    assert "has no score by 'socratic-v2'; it has: socratic-v1." in early.stderr
    [command] = [each for each in early.stderr.split(": socratic-bench ")[1:] if each]
    assert run.run(*command.split()).returncode == 0
    assert run.run(*words, "--profile", "socratic-v2").returncode == 0
