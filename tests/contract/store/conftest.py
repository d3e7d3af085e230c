"""One set of tests for every store adapter: another adapter is another entry here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

import pytest

from socratic_bench.ports.stores.store import Store
from tests.contract.store.adapters import (
    DYNAMODB,
    MEMORY,
    POSTGRESQL,
    SQLITE,
    Database,
    StoreAdapter,
    opened,
)
from tests.contract.store.facts import StoppedClock

ADAPTERS = [
    pytest.param(MEMORY, id=MEMORY.name),
    pytest.param(SQLITE, id=SQLITE.name),
    pytest.param(POSTGRESQL, id=POSTGRESQL.name, marks=pytest.mark.connected),
    pytest.param(DYNAMODB, id=DYNAMODB.name, marks=pytest.mark.long),
]


@pytest.fixture(scope="session", params=ADAPTERS)
def adapter(request: pytest.FixtureRequest) -> StoreAdapter:
    chosen: StoreAdapter = request.param
    return chosen


@pytest.fixture
async def database(adapter: StoreAdapter) -> AsyncIterator[Database]:
    async with adapter.database() as database:
        yield database


@pytest.fixture
def clock() -> StoppedClock:
    """The clock of all stores of a test."""
    return StoppedClock()


@pytest.fixture
async def store(database: Database, clock: StoppedClock) -> AsyncIterator[Store]:
    async with opened(partial(database, clock)) as store:
        yield store


@pytest.fixture
async def other_store(database: Database, clock: StoppedClock) -> AsyncIterator[Store]:
    """A second store on the same data."""
    async with opened(partial(database, clock)) as store:
        yield store
