"""A browser for all tests, and the dashboard over a store of the test's own.

To start a browser takes longer than most tests: all of them share one, and so one event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from socratic_api.entrypoints.container import serve
from socratic_api.settings import ApiSettings
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.ports.broker import Broker
from tests.built_pages import packed_once, require_pages
from tests.dashboard.browser import DESKTOP, PHONE, Visit, launched, visiting
from tests.prepared_sqlite import prepared_store
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from playwright.async_api import Browser

__all__ = ["DESKTOP", "PHONE", "Visit", "serving"]


@pytest.fixture(scope="session", autouse=True)
def _pages() -> Iterator[None]:
    require_pages()
    with packed_once():
        yield


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with launched() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session")
async def store(tmp_path: Path) -> AsyncIterator[SqlStore]:
    async with prepared_store(tmp_path) as store:
        yield store


@asynccontextmanager
async def serving(
    store: SqlStore,
    port: int = 0,
    settings: ApiSettings | None = None,
    broker: Broker | None = None,
) -> AsyncIterator[str]:
    """The address of the API and its pages while they are served."""
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    settings = settings or ApiSettings(freshness_ms=0, drain_deadline=0)
    task = asyncio.create_task(serve(store, "127.0.0.1", port, ready.set_result, settings, broker))
    try:
        begun: tuple[asyncio.Future[Any], ...] = (task, ready)
        await asyncio.wait(begun, return_when=asyncio.FIRST_COMPLETED, timeout=PATIENCE)
        if task.done():
            task.result()
        yield ready.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest_asyncio.fixture(loop_scope="session")
async def address(store: SqlStore) -> AsyncIterator[str]:
    async with serving(store) as address:
        yield address


@pytest_asyncio.fixture(loop_scope="session")
async def visit(browser: Browser, address: str) -> AsyncIterator[Visit]:
    """Opens pages over the store, as `visiting` says."""
    async with visiting(browser, address) as visit:
        yield visit
