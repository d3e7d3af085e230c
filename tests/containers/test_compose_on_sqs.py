"""`make up BROKER=sqs` starts the services in containers, beside an emulator of AWS."""

from __future__ import annotations

import asyncio
import json
import os
import urllib.request
from unittest import mock

import pytest

from socratic_bench.addresses import open_store
from tests.containers.stack import assert_all_was_counted_once, stack_of, submitted
from tests.e2e.command import Terminal
from tests.e2e.quiet_run import cells_of, cells_of_a_quiet_run
from tests.waiting import PATIENCE

TUTORS = ("socratic", "lecturer", "hedger", "drifter")
CONFIG = json.dumps(
    {
        # The replies come a few at a time, so that the judges share them.
        "models": [
            {
                "id": f"reference/{tutor}",
                "options": {"latency_ms": 50},
                "limits": {"concurrency": 4},
            }
            for tutor in TUTORS
        ],
        "repeats": 6,
    }
)
RUNS = len(TUTORS) * 15 * 6
HANDLED = """
from urllib.request import urlopen
shown = urlopen("http://127.0.0.1:9102/metrics").read().decode().splitlines()
print(sum(float(line.split()[-1]) for line in shown
    if line.startswith("socratic_messages_total") and '"handled"' in line))
"""

pytestmark = [
    pytest.mark.connected,
    pytest.mark.long,
    pytest.mark.timeout(1200),
    pytest.mark.xdist_group("containers"),
]


@pytest.fixture(scope="module")
def stack(container_engine):
    with stack_of(container_engine, "sqs.yaml", "BROKER=sqs") as stack:
        yield stack


def test_a_benchmark_over_sqs_has_the_cells_of_an_embedded_run_and_its_data_is_kept(
    stack, tmp_path
):
    said = stack.up("JUDGES=2")
    told = stack.addresses()
    endpoint = told["SOCRATIC_BROKER_URL"].partition("endpoint=")[2].partition("&")[0]
    assert endpoint.startswith("http://127.0.0.1:")
    assert f"AWS:        {endpoint} (an emulator" in said
    terminal = Terminal(tmp_path, told)
    experiment_id = submitted(terminal, CONFIG)
    assert_all_was_counted_once(terminal, experiment_id, runs=RUNS)

    address = f"http://{stack.compose('port', 'api', '8000').strip()}"
    assert f"Dashboard:  {address}" in said
    with urllib.request.urlopen(
        f"{address}/api/model-comparison?experiment={experiment_id}", timeout=PATIENCE
    ) as answer:
        assert sum(model["total_runs"] for model in json.load(answer)["models"]) == RUNS
    handled = [
        float(stack.compose("exec", "-T", "--index", number, "judge", "python", "-c", HANDLED))
        for number in ("1", "2")
    ]
    assert min(handled) > 0
    assert sum(handled) == RUNS

    async def cells():
        with mock.patch.dict(os.environ, told):
            store = open_store(told["SOCRATIC_STORE_URL"])
            try:
                experiment = await store.experiment(experiment_id)
                assert experiment is not None
                return experiment, await cells_of(store, experiment_id)
            finally:
                await store.close()

    experiment, in_containers = asyncio.run(cells())
    assert in_containers == asyncio.run(cells_of_a_quiet_run(experiment, tmp_path))

    leaderboard = ("leaderboard", "--format", "json")
    before = terminal.run(*leaderboard).stdout
    down = stack.run("make", "down")  # as `make up` printed it
    assert down.returncode == 0, down.stderr
    assert stack.containers() == []
    stack.up()
    assert Terminal(tmp_path, stack.addresses()).run(*leaderboard).stdout == before
