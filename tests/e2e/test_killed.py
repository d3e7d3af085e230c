"""Killed at any moment and started again, a benchmark ends as if nothing had happened."""

import os
import random
import subprocess
from contextlib import closing
from sqlite3 import connect

import pytest

from tests.e2e.command import Terminal

KILLS = 20
REPEATS = 60
CONFIG = f"""
models:
  - {{id: reference/socratic, options: {{latency_ms: 30}}, limits: {{concurrency: 2}}}}
  - {{id: reference/drifter, options: {{latency_ms: 20}}, limits: {{concurrency: 2}}}}
  - {{id: reference/hedger, options: {{latency_ms: 10}}, limits: {{concurrency: 1}}}}
  - {{id: reference/faulty, options: {{latency_ms: 5}}, limits: {{concurrency: 4}}}}
scenarios:
  - {{id: one, dimension: ambiguous, prompt: "Where do I begin?"}}
  - {{id: two, dimension: ethical, prompt: "May I?", follow_ups: ["Why not?", "And then?"]}}
  - {{id: three, dimension: student, prompt: "What is 3 x 4?", follow_ups: ["So 12?"]}}
repeats: {REPEATS}
"""


def rows(terminal: Terminal, query: str) -> list[tuple]:
    if not terminal.database.exists():
        return []
    with closing(connect(terminal.database, timeout=30)) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        return database.execute(query).fetchall() if "cells" in tables else []


def cells(terminal: Terminal) -> list[tuple]:
    return rows(
        terminal,
        "SELECT experiment_id, model_id, scenario_id, turn, profile, dimension, record"
        " FROM cells ORDER BY 1, 2, 3, 4, 5",
    )


@pytest.mark.slow
def test_killed_20_times_the_cells_are_those_of_an_undisturbed_run_and_nothing_is_asked_twice(
    tmp_path,
):
    seed = int(os.environ.get("SOCRATIC_TEST_SEED", "0")) or random.SystemRandom().randrange(2**32)
    print(f"SOCRATIC_TEST_SEED={seed}")
    moments = random.Random(seed)
    (tmp_path / "calm").mkdir()
    (tmp_path / "killed").mkdir()
    calm, killed = Terminal(tmp_path / "calm"), Terminal(tmp_path / "killed")
    assert calm.run("run", calm.write("b.yaml", CONFIG)).returncode == 0

    config = killed.write("b.yaml", CONFIG)
    asked: dict[tuple[str, int], int] = {}
    midway = 0
    for _ in range(KILLS):
        running = killed.start("run", config)
        try:
            running.wait(timeout=moments.uniform(0.3, 2.2))
        except subprocess.TimeoutExpired:
            running.kill()
        running.communicate()
        stored = rows(
            killed,
            "SELECT r.run_id, r.turn, c.calls FROM responses r JOIN calls c USING (run_id, turn)",
        )
        midway += 0 < len(stored) < 3 * 2 * REPEATS * 4
        for run_id, turn, calls in stored:
            assert asked.setdefault((run_id, turn), calls) == calls, (
                "a stored response was asked for"
            )

    assert killed.run("run", config).returncode == 0
    for run_id, turn, calls in rows(killed, "SELECT run_id, turn, calls FROM calls"):
        assert asked.get((run_id, turn), calls) == calls
    assert midway >= 8, "too few kills came in the middle of the work to say anything"
    assert cells(killed) == cells(calm)
    assert killed.run("verify").returncode == 0
