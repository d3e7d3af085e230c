"""Another command stops a benchmark that runs in one process."""

import asyncio
import json
import sqlite3
from contextlib import closing

import pytest

from socratic_bench.addresses import open_store
from tests.e2e.command import Terminal
from tests.waiting import block_until

RUNS = 15 * 400
MODEL = {"id": "reference/socratic", "options": {"latency_ms": 200}, "limits": {"concurrency": 8}}


def calls(terminal) -> int:
    """The calls that were leased, without those that were given back before they began."""
    try:
        with closing(sqlite3.connect(terminal.database)) as connection:
            return connection.execute("SELECT COALESCE(SUM(calls), 0) FROM calls").fetchone()[0]
    except sqlite3.OperationalError:
        return 0  # there is no table yet


def experiment_id(terminal) -> str:
    async def only():
        store = open_store(terminal.store)
        try:
            [experiment] = await store.experiments()
        finally:
            await store.close()
        return experiment.experiment_id

    return asyncio.run(only())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["pause"], "experiment {} is paused: `socratic-bench resume {}`"),
        (["cancel"], "experiment {} is cancelled: `socratic-bench resume {}`"),
        (["delete", "--yes"], "experiment {} was deleted"),
    ],
)
def test_a_run_ends_with_1_and_a_sentence_once_somebody_stops_it(tmp_path, words, told):
    terminal = Terminal(tmp_path)
    path = terminal.write("b.yaml", json.dumps({"models": [MODEL], "repeats": RUNS // 15}))
    with terminal.started("run", path) as running:
        block_until(lambda: calls(terminal) >= 20, "some calls")
        mine = experiment_id(terminal)
        stopping = terminal.run(words[0], mine, *words[1:])
        begun = calls(terminal)
        _, err = running.communicate(timeout=60)
    assert stopping.returncode == 0, stopping.stderr
    assert running.returncode == 1, err
    assert told.format(mine, mine) in err
    assert "Traceback" not in err
    if words[0] == "delete":
        assert begun == calls(terminal) == 0
        return
    made = calls(terminal)
    assert 0 < made <= begun < RUNS
    assert f"{made} of {RUNS} runs done, none failed" in err
    assert terminal.run("run", path).returncode == 1
    assert terminal.run("resume", mine).returncode == 0
    with terminal.started("run", path) as again:
        block_until(lambda: calls(terminal) >= begun + 20, "calls after it was resumed")
        again.kill()
