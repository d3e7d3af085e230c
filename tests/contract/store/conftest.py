"""One set of tests for every store adapter: another adapter is another entry here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from socratic_bench.ports.store import Store
from tests.contract.store.adapters import SQLITE, Database, StoreAdapter, opened


@pytest.fixture(scope="session", params=[SQLITE], ids=lambda adapter: adapter.name)
def adapter(request: pytest.FixtureRequest) -> StoreAdapter:
    chosen: StoreAdapter = request.param
    return chosen


@pytest.fixture
def database(adapter: StoreAdapter) -> Iterator[Database]:
    with adapter.database() as database:
        yield database


@pytest.fixture
async def store(database: Database) -> AsyncIterator[Store]:
    async with opened(database) as store:
        yield store


@pytest.fixture
async def other_store(database: Database) -> AsyncIterator[Store]:
    """A second store on the same data."""
    async with opened(database) as store:
        yield store
