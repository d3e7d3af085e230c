"""An API with a broker in this process, and clients of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import httpx
import pytest

from socratic_api.bootstrap import build_app
from socratic_api.capabilities import Capabilities
from socratic_api.settings import ApiSettings
from socratic_bench.adapters.brokers.memory.broker import MemoryBroker
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES

Asking = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]

CONFIG: dict[str, Any] = {"models": ["reference/socratic"], "repeats": 2}


@pytest.fixture
async def broker() -> AsyncIterator[MemoryBroker]:
    broker = MemoryBroker(max_waiting=10_000)
    await broker.declare(WORK_QUEUES, BROADCASTS)
    yield broker
    await broker.close()


@pytest.fixture
def asking(store: SqlStore) -> Asking:
    """Opens clients of an API with these capabilities."""

    @asynccontextmanager
    async def opened(
        capabilities: Capabilities | None = None, **given: Any
    ) -> AsyncIterator[httpx.AsyncClient]:
        settings = ApiSettings(**{"freshness_ms": 0, "store_timeout": 5, **given})
        app = build_app(store, settings, capabilities=capabilities)
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
        ):
            yield client

    return opened


@pytest.fixture
async def services(asking: Asking, broker: MemoryBroker) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an API that reaches services."""
    async with asking(Capabilities(broker)) as client:
        yield client
