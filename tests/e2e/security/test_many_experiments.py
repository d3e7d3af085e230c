"""A runner that meets more experiments than it keeps, and takes no memory for the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from socratic_bench.ports.stores.store import Store
from socratic_runner.last_uses import MOST_EXPERIMENTS
from tests.e2e.service_processes import all_ready
from tests.servers.providers.endpoint import endpoint
from tests.waiting import PATIENCE, until

pytestmark = [
    pytest.mark.connected,
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        not Path("/proc/self/status").exists(), reason="what a process takes is read from /proc"
    ),
]

MODELS = 25
BATCH = 20
"""Experiments at a time."""

KEPT_EACH = 360_000
"""Bytes that a runner takes for each experiment of 25 models that it keeps."""


def config(number: int, address: str) -> dict[str, Any]:
    """An experiment with a question of its own, so that no reply serves two of them."""
    return {
        "models": [
            {"id": f"vllm/model-{at}", "base_url": address, "options": {"stream": False}}
            for at in range(MODELS)
        ],
        "scenarios": [{"id": "one", "dimension": "ambiguous", "prompt": f"Question {number}?"}],
        "repeats": 1,
    }


async def submitted(client: httpx.AsyncClient, number: int, address: str) -> str:
    answer = await client.post("/api/experiments", json=config(number, address))
    assert answer.status_code == 202, answer.text
    return str(answer.json()["experiment_id"])


async def ended(store: Store, experiment_id: str) -> None:
    """Wait until each run has its response in the aggregates."""
    progress = await until(
        lambda: store.progress(experiment_id),
        lambda it: it.done + it.failed == MODELS,
        f"the runs of {experiment_id}",
    )
    assert progress.failed == 0


async def carry_out(client: httpx.AsyncClient, store: Store, address: str, numbers: range) -> None:
    for first in numbers[::BATCH]:
        batch = range(first, min(first + BATCH, numbers.stop))
        for experiment_id in [await submitted(client, each, address) for each in batch]:
            await ended(store, experiment_id)


async def test_a_runner_takes_no_memory_for_experiments_beyond_those_it_keeps(
    environment: dict[str, str], store: Store
):
    enough = MOST_EXPERIMENTS + BATCH
    async with (
        endpoint() as model,
        all_ready(environment, "api", "runner", "judge", "curator") as services,
    ):
        address = (await services["api"].logged("serving"))["address"]
        async with httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client:
            await carry_out(client, store, model.address, range(enough))
            before = services["runner"].most_memory
            await carry_out(client, store, model.address, range(enough, 2 * enough))
            after = services["runner"].most_memory
    print(f"{before / 1e6:.0f} MB after {enough} experiments, {after / 1e6:.0f} MB after twice")
    assert len(model.asked) == 2 * enough * MODELS
    assert after - before < enough * KEPT_EACH / 2
