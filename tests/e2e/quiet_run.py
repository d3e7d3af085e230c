"""The result of an experiment without faults, in one process on a store of its own."""

from __future__ import annotations

from pathlib import Path

from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.ports.stores.store import Store
from socratic_cli.embedded import Benchmark
from socratic_runner.models.registry import open_client

Cells = list[tuple[object, ...]]


async def cells_of(store: Store, experiment_id: str) -> Cells:
    """The cells of an experiment, byte by byte."""
    cells = await store.cells([experiment_id])
    return [(*cell.key, cell.dimension, cell.to_json()) for cell in cells]


async def cells_of_a_quiet_run(experiment: Experiment, folder: Path) -> Cells:
    """The cells that an experiment must have after any fault."""
    store = SqlStore.from_url(f"sqlite:///{folder}/quiet.db")
    try:
        await store.prepare()
        await Benchmark(experiment, store, open_client, limits=store).execute()
        return await cells_of(store, experiment.experiment_id)
    finally:
        await store.close()
