from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from socratic_api.bootstrap import build_app
from socratic_api.settings import ApiSettings
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.ports.stores.store import Store
from tests.built_pages import packed_once, require_pages
from tests.prepared_sqlite import prepared_store
from tests.waiting import PATIENCE


@pytest.fixture(scope="session", autouse=True)
def _pages() -> Iterator[None]:
    require_pages()
    with packed_once():
        yield


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqlStore]:
    async with prepared_store(tmp_path) as store:
        yield store


@pytest.fixture
def settings() -> ApiSettings:
    return ApiSettings(freshness_ms=0, store_timeout=PATIENCE)


@asynccontextmanager
async def opened(store: Store, settings: ApiSettings) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an API that has just started."""
    transport = httpx.ASGITransport(build_app(store, settings), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield client


@pytest.fixture
async def client(store: SqlStore, settings: ApiSettings) -> AsyncIterator[httpx.AsyncClient]:
    async with opened(store, settings) as client:
        yield client
