"""Benchmarks of a model whose provider takes so many calls in a while, and counts refused ones."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.e2e.command import Terminal
from tests.e2e.experiments import submitted
from tests.e2e.service_processes import all_ready, started
from tests.lengths import at_length
from tests.servers.providers.limiter import limiter
from tests.servers.providers.listed import listed
from tests.waiting import until

pytestmark = [pytest.mark.connected, pytest.mark.two_lengths]

REPEATS = at_length(3, 10)
RUNS = 15 * REPEATS
USUAL = {"SOCRATIC_RUNNER_FIRST_DELAY": "0.5"}
"""The usual pauses, which other tests shorten."""


async def test_one_command_gets_all_its_runs_through_with_few_refused_calls(tmp_path):
    async with limiter() as limited:
        terminal = Terminal(tmp_path, USUAL)
        config = terminal.write("b.json", limited.config(repeats=REPEATS))
        done = await asyncio.to_thread(terminal.run, "run", config, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["done"], result["failed"]) == (RUNS, 0)
    assert limited.answered == RUNS
    assert limited.refused <= 2 * RUNS
    print(f"{limited.refused} refused calls of {RUNS} runs")


@pytest.mark.long
async def test_three_runners_together_get_all_runs_through_with_few_refused_calls(
    services_terminal, environment, store
):
    async with limiter() as limited:
        environment = {**environment, **USUAL, **listed(limited.address)}
        async with (
            all_ready(environment, "runner", "judge", "curator"),
            started("runner", environment) as second,
            started("runner", environment) as third,
        ):
            await second.ready()
            await third.ready()
            experiment_id = await submitted(services_terminal, limited.config(repeats=REPEATS))
            progress = await until(
                lambda: store.progress(experiment_id), lambda it: it.done >= RUNS, f"{RUNS} runs"
            )
    assert (progress.done, progress.failed) == (RUNS, 0)
    assert limited.answered == RUNS
    assert limited.refused <= 2 * RUNS
    print(f"{limited.refused} refused calls of {RUNS} runs")
