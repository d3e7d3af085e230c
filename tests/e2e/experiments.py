"""An experiment that services carry out, from its submission to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from socratic_bench.addresses import open_broker
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.errors import StoreUnavailable
from socratic_bench.ports.stores.store import Store
from socratic_bench.results.verification import verify
from tests.e2e.command import Terminal
from tests.waiting import until


async def submitted(terminal: Terminal, config: str) -> str:
    """Submit a benchmark as a person does; its experiment's id."""
    done = await asyncio.to_thread(terminal.run, "submit", terminal.write("b.yaml", config))
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


async def completed(store: Store, experiment_id: str) -> Experiment:
    """Wait until the store marks the experiment as complete; the store may be away meanwhile."""

    async def look() -> Experiment | None:
        try:
            return await store.experiment(experiment_id)
        except StoreUnavailable:
            return None

    experiment = await until(
        look, lambda it: it is not None and it.completed_at is not None, "its completion"
    )
    assert experiment is not None
    progress = await store.progress(experiment_id)
    assert (progress.done, progress.failed) == (progress.planned, 0)
    assert await verify(store, experiment_id) == []
    return experiment


async def dead_letters(addresses: Mapping[str, str]) -> list[str]:
    """The reason of every dead letter."""
    broker = open_broker(addresses["SOCRATIC_BROKER_URL"])
    try:
        await broker.declare(WORK_QUEUES, BROADCASTS)
        return [each.reason for q in WORK_QUEUES for each in await broker.dead_letters(q.name)]
    finally:
        await broker.close()
