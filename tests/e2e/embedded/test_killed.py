"""Killed at any moment and started again, a benchmark ends as if nothing had happened."""

import random
import subprocess
import time
from contextlib import closing
from sqlite3 import connect

import pytest

from tests import evidence
from tests.e2e.command import Terminal
from tests.waiting import PATIENCE

KILLS = 6
REPEATS = 20
RESPONSES = 4 * (1 + 3 + 2) * REPEATS
"""At most: some of reference/faulty's turns never come."""

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
    with closing(connect(terminal.database, timeout=PATIENCE)) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        return database.execute(query).fetchall() if "cells" in tables else []


def cells(terminal: Terminal) -> list[tuple]:
    return rows(
        terminal,
        "SELECT experiment_id, model_id, scenario_id, turn, profile, dimension, record"
        " FROM cells ORDER BY 1, 2, 3, 4, 5",
    )


def kill_midway(
    terminal: Terminal, running: subprocess.Popen[str], most: int, moments: random.Random
) -> None:
    """Kill a benchmark when it has stored up to `most` responses more, or before it has any."""
    before = stored(terminal)
    more = moments.randint(0, most)
    while running.poll() is None and stored(terminal) < before + more:
        time.sleep(0.005)
    time.sleep(moments.uniform(0, 0.2))
    running.kill()
    running.communicate()


def stored(terminal: Terminal) -> int:
    return sum(count for (count,) in rows(terminal, "SELECT count(*) FROM responses"))


@pytest.mark.long
def test_killed_again_and_again_the_cells_are_those_of_a_quiet_run_and_nothing_is_asked_twice(
    tmp_path,
):
    moments = evidence.chance()
    (tmp_path / "calm").mkdir()
    (tmp_path / "killed").mkdir()
    calm, killed = Terminal(tmp_path / "calm"), Terminal(tmp_path / "killed")
    assert calm.run("run", calm.write("b.yaml", CONFIG)).returncode == 0

    config = killed.write("b.yaml", CONFIG)
    asked: dict[tuple[str, int], int] = {}
    midway = 0
    for _ in range(KILLS):
        with killed.started("run", config) as running:
            kill_midway(killed, running, RESPONSES // KILLS, moments)
        calls = rows(
            killed,
            "SELECT r.run_id, r.turn, c.calls FROM responses r JOIN calls c USING (run_id, turn)",
        )
        midway += 0 < len(calls) < RESPONSES
        for run_id, turn, number in calls:
            assert asked.setdefault((run_id, turn), number) == number, (
                "a stored response was asked for"
            )

    assert killed.run("run", config).returncode == 0
    for run_id, turn, number in rows(killed, "SELECT run_id, turn, calls FROM calls"):
        assert asked.get((run_id, turn), number) == number
    assert midway >= KILLS * 0.4, "too few kills came in the middle of the work to say anything"
    assert cells(killed) == cells(calm)
    assert killed.run("verify").returncode == 0
