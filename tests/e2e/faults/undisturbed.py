"""A benchmark that something happens to, and what has to come of it all the same.

async with under_way(terminal, environment, store) as benchmark:
    ...  # break something, and mend it
    await benchmark.ends_as_a_quiet_run()
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from socratic_bench.addresses import open_store
from socratic_bench.domain.aggregates.cell import Cell
from socratic_bench.ports.stores.store import Store
from tests.e2e.command import Terminal
from tests.e2e.experiments import completed, dead_letters, submitted
from tests.e2e.service_processes import ServiceProcess, all_ready
from tests.servers.providers.endpoint import Endpoint, endpoint
from tests.waiting import until

WORKERS = ("runner", "judge", "curator")
REPEATS = 2
RUNS = 15 * REPEATS
"""Of each of the two models."""

REFERENCE = {
    "id": "reference/socratic",
    "options": {"latency_ms": 150},
    "limits": {"concurrency": 2},
}
IN_HAND = 8
"""Calls of the endpoint that wait for their answers when something happens."""


@dataclass
class UnderWay:
    """A benchmark of two models, in the middle of its work.

    One is an endpoint that counts its calls, the other always takes the same time.
    """

    terminal: Terminal
    environment: Mapping[str, str]
    store: Store
    model: Endpoint
    config: str
    experiment_id: str
    services: Mapping[str, ServiceProcess]

    async def told_loudly(self) -> str:
        """Wait for the runner's critical log line and return its reason.

        The runner is not ready then.
        """
        runner = self.services["runner"]

        async def critical() -> list[str]:
            return [line["reason"] for line in runner.logs if line.get("level") == "critical"]

        reasons = await until(critical, bool, "a word that somebody may have to act")
        unready = await runner.until_ready_is(503)
        assert unready.json()["reason"] == "the store or broker does not answer"
        return reasons[0]

    async def ends_as_a_quiet_run(self) -> None:
        """Wait for its end: nothing was lost, paid twice, given up or counted otherwise."""
        await self.model.release()
        await completed(self.store, self.experiment_id)
        for service in self.services.values():
            assert service.running
            await service.until_ready_is(200)
        assert set(self.model.calls_of_a_turn.values()) == {1}
        assert len(self.model.asked) == RUNS
        assert (await self.store.calls(self.experiment_id)).calls == 2 * RUNS
        assert (await self.store.spending(self.experiment_id)).in_flight == 0
        assert await dead_letters(self.environment) == []
        assert await _cells(self.store, self.experiment_id) == await self._cells_of_a_quiet_run()

    async def _cells_of_a_quiet_run(self) -> list[Any]:
        folder = self.terminal.folder / "quiet"
        folder.mkdir()
        terminal = Terminal(folder)
        config = terminal.write("b.yaml", self.config)
        done = await asyncio.to_thread(terminal.run, "run", config, "--json")
        assert done.returncode == 0, done.stderr
        store = open_store(terminal.store)
        try:
            return await _cells(store, self.experiment_id)
        finally:
            await store.close()


@asynccontextmanager
async def under_way(
    terminal: Terminal, environment: Mapping[str, str], store: Store
) -> AsyncIterator[UnderWay]:
    """A benchmark that services carry out, with calls in hand and a few runs done."""
    async with endpoint() as model, all_ready(environment, *WORKERS) as services:
        config = json.loads(model.config(repeats=REPEATS))
        config["models"].append(REFERENCE)
        text = json.dumps(config)
        model.hold()
        experiment_id = await submitted(terminal, text)
        await model.until_asked(1)  # the first call to a model is alone
        await model.answer_next(1)
        await model.until_asked(1 + IN_HAND)
        await until(
            lambda: store.progress(experiment_id), lambda it: it.done > IN_HAND, "a few runs"
        )
        yield UnderWay(terminal, environment, store, model, text, experiment_id, services)


async def _cells(store: Store, experiment_id: str) -> list[Any]:
    """Every cell; without the latency where that is measured."""
    return [
        (*cell.key, cell.dimension, _contents(cell)) for cell in await store.cells([experiment_id])
    ]


def _contents(cell: Cell) -> str:
    if cell.key.model_id == REFERENCE["id"]:
        return cell.to_json()
    contents = cell.contents()
    del contents["latency_ms"]
    return json.dumps(contents, sort_keys=True)
