"""A whole benchmark over a table ends with the cells of one in memory, byte for byte."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from socratic_bench.adapters.stores.dynamodb.store import DynamoDBStore
from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.aggregates.cell import CellKey
from socratic_bench.domain.experiment.manifest import Experiment, Manifest, TutorModel
from socratic_bench.planning.config_file.scenario_selection import load_pack
from socratic_bench.ports.stores.store import Store
from socratic_bench.results.verification import verify
from socratic_cli.embedded import Benchmark
from socratic_runner.models.registry import open_client
from tests.contract.store.facts import MONDAY, contents
from tests.integration.dynamodb.faulty_gateway import faulty_gateway
from tests.servers import aws_emulator, dynamodb

pytestmark = pytest.mark.long

TUTORS = ("socratic", "lecturer", "hedger", "drifter")


def planned(models: int) -> Experiment:
    """Models of all archetypes, each with other latencies, and 45 runs."""
    return Experiment(
        manifest=Manifest(
            models=tuple(
                TutorModel(
                    id=f"reference/{TUTORS[number % len(TUTORS)]}@{number}",
                    options={"latency_ms": number},
                )
                for number in range(models)
            ),
            scenarios=load_pack(),
            repeats=3,
        ),
        created_at=MONDAY,
    )


async def cells_after(store: Store, experiment: Experiment) -> dict[CellKey, str]:
    """The cells of a benchmark that this store carries out to its end."""
    result = await Benchmark(experiment, store, open_client, store).execute()
    total = experiment.manifest.planned_runs
    assert (result.progress.done, result.progress.failed) == (total, 0)
    assert result.calls == total
    assert await verify(store, experiment.experiment_id) == []
    return dict(contents(await store.cells([experiment.experiment_id])))


@pytest.mark.parametrize(("models", "faults"), [(8, 0.0), (4, 0.05)])
async def test_the_cells_of_a_benchmark_are_those_of_one_in_memory(
    models: int, faults: float
) -> None:
    experiment = planned(models)
    async with (
        dynamodb.new_table() as url,
        faulty_gateway(aws_emulator.SERVER.address(), faults, seed=1) as gateway,
    ):
        through = f"{url.partition('?')[0]}?endpoint={quote(gateway.url, safe='')}"
        store = DynamoDBStore.from_url(through if faults else url)
        await store.prepare()
        try:
            cells = await cells_after(store, experiment)
        finally:
            await store.close()
        assert bool(gateway.faults) == bool(faults)
    assert cells == await cells_after(MemoryStore(), experiment)
