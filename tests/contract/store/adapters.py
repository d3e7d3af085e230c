"""What the suite needs to know of a store adapter: how to come by an empty database."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Protocol

from socratic_bench.adapters.memory.store.state import StoreState
from socratic_bench.adapters.memory.store.store import MemoryStore
from socratic_bench.adapters.sql.store import SqlStore
from socratic_bench.ports.stores.store import Store
from tests.servers import postgresql


class Database(Protocol):
    """Gives out a store on the same data each time, as another process would have it."""

    def __call__(self, now: Callable[[], datetime] | None = None) -> Store: ...


@dataclass(frozen=True)
class StoreAdapter:
    """One adapter under test."""

    name: str
    database: Callable[[], AbstractAsyncContextManager[Database]]
    """Makes an empty database, and removes it afterwards."""


@asynccontextmanager
async def _memory() -> AsyncIterator[Database]:
    yield partial(MemoryStore, StoreState())


@asynccontextmanager
async def _sqlite_file() -> AsyncIterator[Database]:
    with tempfile.TemporaryDirectory() as folder:
        yield partial(SqlStore.from_url, f"sqlite:///{folder}/benchmark.db")


@asynccontextmanager
async def _postgresql_database() -> AsyncIterator[Database]:
    async with postgresql.prepared_database() as url:
        yield partial(SqlStore.from_url, url)


MEMORY = StoreAdapter("memory", _memory)
SQLITE = StoreAdapter("sqlite", _sqlite_file)
POSTGRESQL = StoreAdapter("postgresql", _postgresql_database)


@asynccontextmanager
async def opened(database: Callable[[], Store]) -> AsyncIterator[Store]:
    """A store that is ready for use, closed afterwards."""
    store = database()
    try:
        await store.prepare()
        yield store
    finally:
        await store.close()
