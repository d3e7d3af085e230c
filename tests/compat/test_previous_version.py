"""Processes of the previous version go on while one of today migrates the database they use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from socratic_bench.adapters.stores.sql.database import backend_for
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.ports.stores.experiments import Progress
from socratic_bench.ports.stores.leases import CallCount
from socratic_bench.results.verification import verify
from tests.compat import previous_version
from tests.compat.previous_version import ANSWERED, EXPERIMENT, FAILURE, RESPONSE, SCORE
from tests.contract.store.adapters import opened
from tests.contract.store.facts import failures_in
from tests.servers import postgresql


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.connected)])
async def url(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/benchmark.db"
        return
    async with postgresql.prepared_database() as url:
        yield url


async def test_today_reads_what_the_previous_version_writes_into_todays_schema(url: str) -> None:
    id_ = EXPERIMENT.experiment_id
    async with opened(lambda: SqlStore.from_url(url)) as store:
        await asyncio.to_thread(backend_for(url).migrate, previous_version.write)
        assert await store.experiments() == [EXPERIMENT]
        assert await store.responses([ANSWERED.run_id]) == {ANSWERED.run_id: [RESPONSE]}
        assert [page async for page in store.score_rows(id_)] == [[SCORE]]
        assert await failures_in(store, id_) == [FAILURE]
        assert await store.progress(id_) == Progress(planned=12, done=2, failed=1)
        assert await store.calls(id_) == CallCount(calls=1, turns=1)
        assert (await store.spending(id_)).committed == 5
        assert await verify(store, id_) == []
        await asyncio.to_thread(backend_for(url).migrate, previous_version.complete)
        [experiment] = await store.experiments()
        assert experiment.completed_at is not None
