"""`socratic-bench run`: the main job, through the real command."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from contextlib import closing
from sqlite3 import connect

import pytest

from tests.e2e.command import Terminal
from tests.processes.forked import COMMAND
from tests.waiting import PATIENCE, block_until

ON_ONE_STORE = pytest.mark.xdist_group("a benchmark that has run")
CONFIG = """
models:
  - reference/socratic
  - reference/lecturer
repeats: 3
"""


def result_of(done):
    return json.loads(done.stdout)


@pytest.fixture
def config(terminal):
    return terminal.write("benchmark.yaml", CONFIG)


@pytest.fixture(scope="module")
def first_run(tmp_path_factory):
    """A finished benchmark, with its output."""
    terminal = Terminal(tmp_path_factory.mktemp("first-run"))
    return terminal, terminal.run("run", terminal.write("benchmark.yaml", CONFIG))


@pytest.fixture
def finished(first_run, terminal, config):
    """A terminal with a store of its own, in which that benchmark has run."""
    shutil.copy(first_run[0].database, terminal.database)
    return terminal


@ON_ONE_STORE
def test_a_benchmark_runs_and_shows_every_model_with_its_45_runs(first_run):
    _, done = first_run
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[1].split()[:2] == ["1", "reference/socratic"]
    assert lines[2].split()[:2] == ["2", "reference/lecturer"]
    end_of_runs = lines[0].index("runs") + len("runs")
    assert [line[:end_of_runs].split()[-1] for line in lines[1:3]] == ["45/45", "45/45"]
    assert "not a real model" in done.stdout
    assert "90 runs done, none failed, 90 calls made." in done.stderr


@ON_ONE_STORE
def test_run_again_it_calls_no_model_and_shows_the_same(first_run, finished, config):
    again = finished.run("run", config)
    assert again.stdout == first_run[1].stdout
    assert "90 runs done, none failed, 0 calls made." in again.stderr


def test_json_is_alone_on_standard_output(terminal, config):
    done = terminal.run("run", config, "--json")
    result = result_of(done)
    assert (result["planned"], result["done"], result["failed"]) == (90, 90, 0)
    assert result["model_calls"] == 90
    assert [m["total_runs"] for m in result["leaderboard"]["models"]] == [45, 45]


@ON_ONE_STORE
def test_the_leaderboard_has_the_shape_of_the_api(finished):
    board = json.loads(finished.run("leaderboard", "--format", "json").stdout)
    assert board["winner"] == "reference/socratic"
    first = board["models"][0]
    assert {
        *("model_id", "model_name", "total_runs", "overall_score", "confidence_interval"),
        *("coverage", "dimensions"),
    } <= set(first)
    assert set(first["dimensions"]) == {"ambiguous", "ethical", "student"}
    assert {"runs", "overall", "verbosity", "exploratory", "interrogative"} <= set(
        first["dimensions"]["student"]
    )
    assert first["dimensions"]["student"]["runs"] == 15
    low, high = first["confidence_interval"]
    assert 0 <= low <= first["overall_score"] <= high <= 1


@ON_ONE_STORE
def test_csv_has_a_row_a_model(finished):
    header, *rows = finished.run("leaderboard", "--format", "csv").stdout.splitlines()
    assert header.startswith("rank,model_id,")
    assert [row.split(",")[1] for row in rows] == ["reference/socratic", "reference/lecturer"]


@ON_ONE_STORE
def test_verify_agrees_and_sees_a_changed_cell(finished):
    done = finished.run("verify")
    assert done.returncode == 0
    assert "30 cells of 1 experiments agree" in done.stderr
    with closing(connect(finished.database)) as database, database:
        database.execute("DELETE FROM scores WHERE rowid = (SELECT min(rowid) FROM scores)")
    done = finished.run("verify")
    assert done.returncode == 1
    assert "its rows give" in done.stdout


def test_progress_is_shown_on_a_terminal_and_not_in_a_pipe(terminal, config):
    piped = terminal.run("run", config)
    assert "\x1b" not in piped.stderr
    script = (
        "import pty, sys; "
        f"status = pty.spawn([{str(COMMAND)!r}, 'run', {str(config)!r}, '--store', "
        f"'sqlite:///{terminal.folder}/other.db']); sys.exit(status >> 8)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        timeout=PATIENCE,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert shown.returncode == 0
    assert b"45/45" in shown.stdout


def test_a_model_that_fails_every_time_is_named_and_loses_nothing_else(terminal):
    terminal.write("recorded.jsonl", "")
    config = terminal.write("b.yaml", "models: [replay/recorded.jsonl, reference/socratic]\n")
    done = terminal.run("run", config)
    assert done.returncode == 1
    assert "replay/recorded.jsonl: 45 of 45 runs failed (not_found 45), for example:" in done.stderr
    board = json.loads(terminal.run("leaderboard", "--format", "json").stdout)
    socratic, replay = board["models"]
    assert (socratic["model_id"], socratic["coverage"]) == ("reference/socratic", 1.0)
    assert (replay["overall_score"], replay["coverage"], replay["total_runs"]) == (None, 0.0, 45)


def test_a_provider_that_fails_in_every_way_lowers_coverage_and_no_mean(terminal):
    config = terminal.write("b.yaml", "models: [reference/faulty]\nrepeats: 3\n")
    result = result_of(terminal.run("run", config, "--json"))
    (model,) = result["leaderboard"]["models"]
    assert result["done"] == 45
    assert set(model["statuses"]) >= {"ok", "error", "refused", "empty", "truncated"}
    assert 0 < model["coverage"] < 1
    assert model["coverage"] == model["scored_responses"] / 45
    assert terminal.run("verify").returncode == 0


def test_failed_runs_are_tried_again_only_when_asked_to(terminal):
    recording = terminal.write("r.jsonl", "")
    config = terminal.write("b.yaml", "models: [replay/r.jsonl]\nrepeats: 1\n")
    assert terminal.run("run", config).returncode == 1
    again = result_of(terminal.run("run", config, "--json"))
    assert (again["model_calls"], again["failed"]) == (0, 15)
    retried = result_of(terminal.run("run", config, "--retry-failed", "--json"))
    assert (retried["model_calls"], retried["failed"]) == (15, 15)
    assert recording.exists()
    assert terminal.run("verify").returncode == 0


def test_a_broken_line_of_a_recording_is_named_and_the_others_are_replayed(terminal):
    recording = terminal.write(
        "recorded.jsonl",
        '{"scenario_id": "one", "text": "What do you think?"}\n'
        '{"scenario_id": "two", "text": \n'
        '{"scenario_id": "three", "text": "Why?", "output_tokens": 250}\n',
    )
    scenarios = "".join(
        f"  - {{id: {name}, dimension: student, prompt: 'Help?'}}\n"
        for name in ("one", "two", "three")
    )
    config = terminal.write(
        "b.yaml", f"models: [replay/recorded.jsonl]\nrepeats: 1\nscenarios:\n{scenarios}"
    )
    done = terminal.run("run", config, "--json")
    (model,) = result_of(done)["leaderboard"]["models"]
    assert model["scored_responses"] == 2
    assert model["statuses"] == {"ok": 2, "error": 1}
    assert f"{recording.name}" in done.stderr
    assert "line 2" in done.stderr


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (
            "models: [reference/socratic]\nrepeat: 3\n",
            "b.yaml line 2, repeat: unknown field; did you mean `repeats`?",
        ),
        ("models: [openai/gpt-9]\n", "b.yaml line 1, models[0]"),
        (
            "models:\n- id: reference/socratic\n  price:\n    input_per_million: -3\n",
            "b.yaml line 4, models[0].price.input_per_million: must be 0 or more, not -3",
        ),
        ("models: [replay/missing.jsonl]\n", "missing.jsonl"),
        ("models: [\n", "b.yaml line"),
    ],
)
def test_a_wrong_config_is_one_sentence_with_its_place_and_exit_code_2(terminal, config, sentence):
    done = terminal.run("run", terminal.write("b.yaml", config))
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert not terminal.database.exists()


def test_a_full_disk_is_one_sentence_and_the_same_command_goes_on_afterwards(terminal, config):
    def small_disk():
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    full = subprocess.run(
        [COMMAND, "run", config],
        capture_output=True,
        text=True,
        cwd=terminal.folder,
        env=terminal.environ(),
        preexec_fn=small_disk,
        timeout=PATIENCE,
        check=False,
    )
    assert full.returncode == 1
    assert "Traceback" not in full.stderr
    errors = [line for line in full.stderr.splitlines() if line.startswith("Error:")]
    assert len(errors) == 1
    assert str(terminal.database) in errors[0]
    assert terminal.run("run", config).returncode == 0
    assert terminal.run("verify").returncode == 0


def test_a_store_that_cannot_be_made_is_one_sentence(terminal, config):
    terminal.write("plain", "a file, no folder")
    done = terminal.run("run", config, "--store", f"sqlite:///{terminal.folder}/plain/x.db")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith(f"Error: {terminal.folder}/plain/x.db cannot be used")


def test_two_benchmarks_at_once_on_one_store_are_refused(terminal):
    slow = "models: [{id: reference/socratic, options: {latency_ms: 60000}}]\n"
    config = terminal.write("slow.yaml", slow)
    with terminal.started("run", config) as first:
        block_until((terminal.folder / "benchmark.db.lock").exists, "the lock on the store")
        assert first.poll() is None
        second = terminal.run("run", config)
        assert second.returncode == 1
        assert "another benchmark is running" in second.stderr


def test_ctrl_c_finishes_and_stores_what_is_in_flight(terminal):
    config = terminal.write(
        "b.yaml",
        "models: [{id: reference/socratic, options: {latency_ms: 300},"
        " limits: {concurrency: 3}}]\nrepeats: 20\n",
    )
    with terminal.started("run", config) as running:
        block_until(lambda: _stored(terminal) >= 3, "three responses")
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=PATIENCE)
    assert running.returncode == 1
    assert "Stopping: calls in flight are finished and stored" in said
    assert "the same command continues from here" in said
    with closing(connect(terminal.database)) as database:
        (calls,) = database.execute("SELECT sum(calls) FROM calls").fetchone()
    assert calls == _stored(terminal)
    assert terminal.run("verify").returncode == 0


def _stored(terminal) -> int:
    if not terminal.database.exists():
        return 0
    with closing(connect(terminal.database, timeout=PATIENCE)) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        if "responses" not in tables:
            return 0
        (count,) = database.execute("SELECT count(*) FROM responses").fetchone()
        return int(count)
