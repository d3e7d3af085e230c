"""No experiment pays again for an answer that another one has."""

from __future__ import annotations

import asyncio
import json
from collections import Counter

import pytest

from socratic_bench.addresses import open_store
from socratic_bench.domain.aggregates.cell import Cell
from socratic_bench.ports.stores.store import Store
from tests.e2e.command import Terminal
from tests.e2e.service_processes import all_ready
from tests.servers import postgresql, rabbitmq
from tests.servers.providers.endpoint import endpoint

pytestmark = pytest.mark.connected

SCENARIOS = [
    {"id": "one", "dimension": "student", "prompt": "What is 3 x 4?", "follow_ups": ["So 12?"]},
    {"id": "two", "dimension": "ethical", "prompt": "May I lie?"},
]
PRICE = {"input_per_million": 1, "output_per_million": 2}
COST = (100 + 2 * 7) / 1e6
"""USD for one call of the endpoint."""


class Shop:
    """A terminal, and an endpoint that counts its calls."""

    def __init__(self, terminal: Terminal, address: str) -> None:
        self.terminal = terminal
        self.address = address

    async def run(self, *options: str, models=("a",), repeats=2, **changes):
        models = [
            {"id": f"vllm/{name}", "base_url": self.address, "options": {"stream": False}}
            | {"price": PRICE}
            for name in models
        ]
        config = {"models": models, "scenarios": SCENARIOS, "repeats": repeats, **changes}
        path = self.terminal.write("b.json", json.dumps(config))
        done = await asyncio.to_thread(self.terminal.run, "run", path, "--json", *options)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), done.stderr


async def test_one_more_repeat_and_one_more_model_are_all_that_is_asked_and_paid(tmp_path):
    async with endpoint() as model:
        shop = Shop(Terminal(tmp_path), model.address)
        first, said = await shop.run()
        assert "4 runs: 4 new (6 calls: likely $" in said
        assert (first["model_calls"], first["spending"]["paid_usd"]) == (
            6,
            pytest.approx(6 * COST),
        )

        second, said = await shop.run(repeats=3)
        assert "6 runs: 4 reused (already paid: $0.00068), 2 new (3 calls" in said
        assert (second["model_calls"], second["reused"], second["done"]) == (3, 4, 6)
        assert second["spending"]["paid_usd"] == pytest.approx(3 * COST)
        assert first["experiment_id"] != second["experiment_id"]

        third, _ = await shop.run(repeats=3, models=("a", "b"))
        assert (third["model_calls"], third["reused"]) == (9, 6)
        left, _ = await shop.run("--estimate", repeats=4, models=("a", "b"))
        assert (left["reused_runs"], left["new_runs"], left["total"]["calls"]) == (12, 4, 6)
        assert len(model.asked) == 6 + 3 + 9
        assert set(Counter(model.asked).values()) == {1}, "every seed was asked once"

        fresh, said = await shop.run("--fresh", repeats=1)
        assert (fresh["model_calls"], fresh["reused"]) == (3, 0)
        other, _ = await shop.run(repeats=1, occasion="next month")
        assert other["model_calls"] == 3


async def test_nothing_of_another_endpoint_is_taken_for_a_models_own(tmp_path):
    async with endpoint() as hostile, endpoint() as real:
        terminal = Terminal(tmp_path)
        await Shop(terminal, hostile.address).run()
        found, _ = await Shop(terminal, real.address).run()
        assert (found["reused"], len(real.asked)) == (0, 6)


def _figures(cell: Cell) -> str:
    """A cell without the notes that answers are reused ones, and since when."""
    notes = ("note.reused", "asked.", "reused.")
    cell.counts = {name: n for name, n in cell.counts.items() if not name.startswith(notes)}
    return cell.to_json()


async def test_services_reuse_what_is_stored_and_the_figures_are_those_of_a_fresh_run(tmp_path):
    """Those of repeats that go on until the intervals are narrow, too."""
    models = ["reference/socratic", "reference/lecturer"]
    others = [*models, "reference/drifter", "reference/hedger"]
    narrow = {"models": others, "repeats": 8, "stop_when": {"interval": 0.068}}
    alone = Terminal(tmp_path)

    async with rabbitmq.namespace() as broker, postgresql.prepared_database() as address:
        terminal = Terminal(
            tmp_path, {"SOCRATIC_BROKER_URL": broker, "SOCRATIC_STORE_URL": address}
        )
        store, quiet = open_store(address), open_store(alone.store)

        async def submitted(**config) -> dict:
            path = terminal.write("b.json", json.dumps(config))
            done = await asyncio.to_thread(terminal.run, "submit", path, "--json")
            assert done.returncode == 0, done.stderr
            counts = json.loads(done.stdout)
            watched = await asyncio.to_thread(terminal.run, "watch", counts["experiment_id"])
            assert watched.returncode == 0, watched.stderr
            return counts

        async def figures(of: Store, experiment_id: str) -> list[tuple]:
            cells = await of.cells([experiment_id])
            return [(cell.key[1:], cell.dimension, _figures(cell)) for cell in cells]

        try:
            async with all_ready(terminal.environment, "runner", "judge", "curator"):
                await submitted(models=models, repeats=2)
                more = await submitted(models=models, repeats=3)
                assert (more["planned"], more["answered"], more["requested"]) == (90, 60, 30)
                assert (await store.calls(more["experiment_id"])).calls == 30
                stopped = await submitted(**narrow)
            for config in ({"models": models, "repeats": 3}, narrow):
                path = alone.write("alone.json", json.dumps(config))
                ran = await asyncio.to_thread(alone.run, "run", path, "--fresh")
                assert ran.returncode == 0, ran.stderr
            for id_ in (more["experiment_id"], stopped["experiment_id"]):
                assert await figures(store, id_) == await figures(quiet, id_)
                assert (await store.progress(id_)).planned == (await quiet.progress(id_)).planned
            assert 2 * 60 < (await store.progress(stopped["experiment_id"])).planned < 8 * 60
        finally:
            await store.close()
            await quiet.close()
