"""The progress of an experiment, by its cells."""

from __future__ import annotations

from socratic_bench.adapters.stores.dynamodb.table import keys
from socratic_bench.adapters.stores.dynamodb.table.table import Table
from socratic_bench.ports.stores.experiments import Progress


async def progress_of_cells(
    table: Table, experiment_id: str, profile: str, planned_runs: int
) -> Progress:
    """Sum up the ended and the failed runs under a profile."""
    items = await table.query(keys.cells(experiment_id))
    own = [item for item in items if item["profile"] == profile]
    return Progress(
        planned_runs,
        sum(int(item["ended"]) for item in own),
        sum(int(item.get("failed", 0)) for item in own),
    )
