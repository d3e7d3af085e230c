"""A rolling upgrade replaces every process of an earlier version while there is work to do.

Meanwhile old and new processes share queues and tables.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from socratic_bench.adapters.brokers.rabbitmq.broker import RabbitMQBroker
from socratic_bench.adapters.clock import SystemClock
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.domain.aggregates.cell import Cell, CellKey
from socratic_bench.domain.experiment.manifest import Experiment, Limits
from socratic_bench.planning.config_file.config import read_config
from socratic_bench.planning.model_catalogue import RegisteredModels
from socratic_bench.ports.broker import Broker
from socratic_bench.ports.stores.store import Store
from socratic_bench.results.verification import verify
from tests.compat import earlier_version
from tests.e2e.command import Terminal
from tests.e2e.quiet_run import Cells, cells_of, cells_of_a_quiet_run
from tests.e2e.service_processes import ServiceProcess, start
from tests.servers import postgresql, rabbitmq
from tests.waiting import until

pytestmark = [pytest.mark.connected, pytest.mark.long]

REPLACED = ("runner", "judge", "curator", "runner", "judge", "curator", "api")
"""The earlier processes, in the order in which a new one takes the place of each."""

REPEATS_AT_FIRST = 20
"""Of the experiment that the earlier version plans, and that is under way when the first new
process starts."""

REPEATS = 4
"""Of each experiment that is under way when an earlier process is told to go."""

TUTORS = ("socratic", "lecturer", "hedger")
LIMITS = {"concurrency": 6}
LATENCY_MS = 200
HASTY = {
    "SOCRATIC_RUNNER_FIRST_DELAY": "0.05",
    "SOCRATIC_RUNNER_BUSY_DELAY": "0.5",
}
START = 30
"""Runs of an experiment that are done once it is under way."""


@dataclass
class Versions:
    """The two versions, and the servers they share."""

    old: Mapping[str, str]
    new: Mapping[str, str]
    store: Store
    broker: Broker
    folder: Path
    experiments: list[Experiment] = field(default_factory=list)

    async def submit(self, repeats: int) -> str:
        """Submit an experiment as a person does: the first one with the earlier command.

        Today's has to submit the others: the earlier one starts on no schema newer than its own.
        """
        # Models with other options: what an experiment asked before is not asked again.
        options = {"latency_ms": LATENCY_MS + len(self.experiments)}
        models = [
            {"id": f"reference/{tutor}", "options": options, "limits": LIMITS} for tutor in TUTORS
        ]
        terminal = Terminal(self.folder, dict(self.new if self.experiments else self.old))
        config = terminal.write("b.yaml", json.dumps({"models": models, "repeats": repeats}))
        done = await asyncio.to_thread(terminal.run, "submit", config)
        assert done.returncode == 0, done.stderr
        manifest = read_config(config, RegisteredModels()).manifest
        # What a model bears is no part of what is measured: a quiet run need not wait for it.
        free = tuple(model.model_copy(update={"limits": Limits()}) for model in manifest.models)
        unlimited = manifest.model_copy(update={"models": free})
        experiment = Experiment(manifest=unlimited, created_at=SystemClock().now())
        assert done.stdout.strip() == experiment.experiment_id
        self.experiments.append(experiment)
        return experiment.experiment_id

    async def done(self, experiment_id: str, runs: int) -> None:
        """Wait until so many runs of an experiment are done."""
        await until(
            lambda: self.store.progress(experiment_id),
            lambda progress: progress.done >= runs,
            f"{runs} runs of {experiment_id}",
        )


def _without_notes(cells: Cells) -> list[str]:
    """The cells without the notes on answers, which the earlier judge does not count."""
    plain = []
    for *key, dimension, text in cells:
        cell = Cell.from_json(CellKey._make(key), str(dimension), str(text))
        cell.counts = {}
        plain.append(f"{cell.key} {cell.to_json()}")
    return plain


async def test_services_are_replaced_by_newer_ones_under_load_and_nobody_notices(tmp_path):
    old_folder = tmp_path / "earlier"
    old_folder.mkdir()
    old = await asyncio.to_thread(earlier_version.unpacked, old_folder)
    async with AsyncExitStack() as ending:
        addresses = {
            "SOCRATIC_BROKER_URL": await ending.enter_async_context(rabbitmq.namespace()),
            "SOCRATIC_STORE_URL": await ending.enter_async_context(postgresql.new_database()),
        }
        store = SqlStore.from_url(addresses["SOCRATIC_STORE_URL"])
        broker = RabbitMQBroker(addresses["SOCRATIC_BROKER_URL"])
        ending.push_async_callback(store.close)
        ending.push_async_callback(broker.close)
        new = {**addresses, **HASTY}
        on = Versions({**new, **old}, new, store, broker, tmp_path)

        async def started(kind: str, environment: Mapping[str, str]) -> ServiceProcess:
            service = await start(kind, environment)
            ending.push_async_callback(service.close)
            return await service.ready()

        earlier = [await started(kind, on.old) for kind in REPLACED]
        await on.done(await on.submit(REPEATS_AT_FIRST), START)
        for leaving in earlier:
            await started(leaving.kind, on.new)
            id_ = await on.submit(REPEATS)
            await on.done(id_, START)
            if leaving.kind == "api":
                shown = (await leaving.get("/api/model-comparison")).json()
                assert len(shown.get("models", ())) == len(TUTORS), shown
            leaving.terminate()
            assert await leaving.ended() == 0, leaving.text

        for each in on.experiments:
            id_ = each.experiment_id
            await on.done(id_, each.manifest.planned_runs)
            asking = partial(store.experiment, id_)
            await until(asking, lambda it: it.completed_at is not None, "its end")
            assert await verify(store, id_) == []
            assert (await store.calls(id_)).calls == each.manifest.planned_runs
            expected = await cells_of_a_quiet_run(each, tmp_path)
            assert _without_notes(await cells_of(store, id_)) == _without_notes(expected)
        await broker.declare(WORK_QUEUES, BROADCASTS)
        dead = [each.reason for q in WORK_QUEUES for each in await broker.dead_letters(q.name)]
        assert dead == []
