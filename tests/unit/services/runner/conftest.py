"""A store for a runner that carries out the experiment of `scripted.py`."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from socratic_bench.adapters.memory.store.store import MemoryStore
from tests.unit.services.runner.scripted import EXPERIMENT


@pytest.fixture
async def store() -> AsyncIterator[MemoryStore]:
    store = MemoryStore()
    await store.register(EXPERIMENT)
    yield store
    await store.close()
