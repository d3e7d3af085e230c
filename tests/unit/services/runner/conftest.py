"""A store for a runner that carries out the experiment of `scripted.py`, and time that passes.

In the folders of VIRTUAL no store and no model is another process: their waits take no time. A test
that needs the machine's clock says `@pytest.mark.asyncio(loop_factories=["real time"])`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import pytest

from socratic_bench.adapters.stores.memory.store import MemoryStore
from tests.unit.services.runner.limits.virtual_time import VirtualTimeLoop
from tests.unit.services.runner.scripted import EXPERIMENT

HERE = Path(__file__).parent
VIRTUAL = (HERE, HERE / "conversations", HERE / "caches")
LOOPS = {"virtual time": VirtualTimeLoop, "real time": asyncio.new_event_loop}


def pytest_asyncio_loop_factories(
    item: pytest.Item,
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    marker = item.get_closest_marker("asyncio")
    if marker is not None and "loop_factories" in marker.kwargs:
        return LOOPS
    name = "virtual time" if item.path.parent in VIRTUAL else "real time"
    return {name: LOOPS[name]}


@pytest.fixture
async def store() -> AsyncIterator[MemoryStore]:
    store = MemoryStore()
    await store.register(EXPERIMENT)
    yield store
    await store.close()
