"""A store for services that carry out an experiment of two runs."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from socratic_bench.adapters.stores.memory.store import MemoryStore
from tests.unit.services.two_runs import EXPERIMENT


@pytest.fixture
async def store() -> AsyncIterator[MemoryStore]:
    store = MemoryStore()
    await store.register(EXPERIMENT)
    yield store
    await store.close()
