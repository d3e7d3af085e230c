from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from socratic_bench.adapters.sql.store import SqlStore


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "benchmark.db"


@pytest.fixture
async def store(database: Path) -> AsyncIterator[SqlStore]:
    store = SqlStore.from_url(f"sqlite:///{database}")
    await store.prepare()
    yield store
    await store.close()
