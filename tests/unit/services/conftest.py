"""A store for services that carry out an experiment of two runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from socratic_bench.adapters.sql.store import SqlStore
from tests.unit.services.two_runs import EXPERIMENT


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqlStore]:
    store = SqlStore.from_url(f"sqlite:///{tmp_path}/benchmark.db")
    await store.prepare()
    await store.register(EXPERIMENT)
    yield store
    await store.close()
