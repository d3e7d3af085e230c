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
    SKETCH,
    SQLITE,
    Database,
    StoreAdapter,
    opened,
)
from tests.contract.store.facts import StoppedClock
from tests.lengths import on_server


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "adapter" in metafunc.fixturenames:
        later = on_server(metafunc.definition)
        connected = on_server(metafunc.definition, pytest.mark.connected)
        adapters = [
            pytest.param(MEMORY, id=MEMORY.name),
            pytest.param(SKETCH, id=SKETCH.name),
            pytest.param(SQLITE, id=SQLITE.name),
            pytest.param(POSTGRESQL, id=POSTGRESQL.name, marks=connected),
            pytest.param(DYNAMODB, id=DYNAMODB.name, marks=later),
        ]
        metafunc.parametrize("adapter", adapters, indirect=True, scope="session")


@pytest.fixture(scope="session")
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
