"""A store for a runner that carries out the experiment of `scripted.py`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from socratic_bench.adapters.sql.store import SqlStore
from tests.unit.services.runner.scripted import EXPERIMENT


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqlStore]:
    store = SqlStore.from_url(f"sqlite:///{tmp_path}/benchmark.db")
    await store.prepare()
    await store.register(EXPERIMENT)
    yield store
    await store.close()
