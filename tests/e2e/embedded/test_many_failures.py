"""A command takes no more memory where very many runs have failed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.planning.config_file.config import read_config
from socratic_bench.planning.model_catalogue import RegisteredModels
from tests.contract.store.facts import MONDAY, a_failure
from tests.e2e.command import Terminal

MANY = 20_000
PAGE = 1000
ROOM = 25 * 1024 * 1024
"""Bytes: the failures alone took three times as much when all of them were held."""

CONFIG = "models: [reference/socratic]\nscenarios: [{id: a, dimension: d, prompt: Why?}]\n"

SAYS_ITS_MEMORY = """
import atexit, pathlib, sys
atexit.register(lambda: sys.stderr.write(pathlib.Path("/proc/self/status").read_text()))
from socratic_cli.cli import main
main()
"""

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="what a process takes is read from /proc"
)


def failed_experiment(terminal: Terminal, repeats: int) -> tuple[str, str]:
    """A configuration, and the id of its experiment; every run of it has failed."""
    config = terminal.write(f"{repeats}.yaml", CONFIG + f"repeats: {repeats}\n")
    read = read_config(config, RegisteredModels())
    experiment = Experiment(manifest=read.manifest, created_at=MONDAY)

    async def fail_all() -> None:
        store = SqlStore.from_url(terminal.store)
        await store.prepare()
        await store.register(experiment)
        failures = [a_failure(run) for run in experiment.runs()]
        for start in range(0, len(failures), PAGE):
            await store.fold([], failures[start : start + PAGE])
        await store.complete(experiment.experiment_id, MONDAY)
        await store.close()

    asyncio.run(fail_all())
    return str(config), experiment.experiment_id


def memory_of(terminal: Terminal, *words: str) -> tuple[str, int]:
    """The output of a command, and its peak memory in bytes."""
    done = subprocess.run(
        [sys.executable, "-c", SAYS_ITS_MEMORY, *words],
        capture_output=True,
        cwd=terminal.folder,
        env=terminal.environ(),
        text=True,
        check=False,
    )
    [line] = [line for line in done.stderr.splitlines() if line.startswith("VmHWM:")]
    return done.stdout + done.stderr, int(line.split()[1]) * 1024


@pytest.mark.parametrize("command", ["status", "run"])
@pytest.mark.long
def test_failures_are_counted_without_holding_them(terminal: Terminal, command: str):
    said, memory = [], []
    for repeats in (3, MANY):
        config, experiment_id = failed_experiment(terminal, repeats)
        words = ["status", experiment_id] if command == "status" else ["run", config]
        text, took = memory_of(terminal, *words)
        said.append(text)
        memory.append(took)
    print(memory)
    assert "rate_limited 3" in said[0]
    assert f"rate_limited {MANY}" in said[1]
    assert memory[1] - memory[0] < ROOM
