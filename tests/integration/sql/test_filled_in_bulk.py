"""The store that benchmarks fill in bulk is the one that its roles would make."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.ports.stores.responses import NO_LEASE, RecordedFailure
from tests.benchmarks.filled_stores import PENDING, fill, outcomes
from tests.benchmarks.scale.loading import loader_of
from tests.benchmarks.scale.plans import Size, experiments_of
from tests.contract.store.adapters import opened

COUNTERS = {"revision", "changes", "completed_at"}
"""Columns that tell how often a role wrote a row, and when."""


def rows_of(path: Path) -> dict[str, list[dict[str, object]]]:
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        tables = sorted({name for (name,) in names} - {"alembic_version", "changes"})
        return {
            table: sorted(
                (
                    {name: row[name] for name in row.keys() if name not in COUNTERS}  # noqa: SIM118
                    for row in connection.execute(f"SELECT * FROM {table}")
                ),
                key=repr,
            )
            for table in tables
        }


async def test_rows_and_cells_are_those_that_the_roles_of_the_store_write(tmp_path: Path) -> None:
    experiments = experiments_of(Size(runs=1_000, experiments=2, models=3))
    bulk, roles = tmp_path / "bulk.db", tmp_path / "roles.db"
    url = f"sqlite:///{bulk}"
    async with opened(lambda: SqlStore.from_url(url)) as store, loader_of(url) as loader:
        await fill(store, loader, experiments)

    async with opened(lambda: SqlStore.from_url(f"sqlite:///{roles}")) as store:
        for place, experiment in enumerate(experiments):
            await store.register(experiment)
            done = experiment.manifest.planned_runs - (0 if place else PENDING)
            found = list(outcomes(experiment, done))
            failures = [each.failure for each in found if each.failure]
            responses = [each.response for each in found if each.response]
            await store.record(responses, [NO_LEASE] * len(responses))
            await store.record_failures([RecordedFailure(each, 0) for each in failures])
            await store.fold([each.scored for each in found if each.scored], failures)

    assert rows_of(bulk) == rows_of(roles)
