from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from socratic_bench.adapters.stores.memory.store import MemoryStore


@pytest.fixture
async def store() -> AsyncIterator[MemoryStore]:
    store = MemoryStore()
    yield store
    await store.close()
