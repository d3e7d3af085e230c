"""What the suite knows of a store adapter: how to get an empty database."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from socratic_bench.adapters.stores.dynamodb.store import DynamoDBStore
from socratic_bench.adapters.stores.memory.state import StoreState
from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.ports.stores.store import Store
from tests.contract.sketches.store_sketch import Server, SketchStore
from tests.lengths import at_length
from tests.servers import dynamodb, postgresql, sqlite

AnyStore = TypeVar("AnyStore", bound=Store)


class Database(Protocol):
    """Gives out a store on the same data each time, as another process would have it."""

    def __call__(self, now: Callable[[], datetime] | None = None) -> Store: ...


@dataclass(frozen=True)
class StoreAdapter:
    """One adapter under test."""

    name: str
    database: Callable[[], AbstractAsyncContextManager[Database]]
    """Makes an empty database, and removes it afterwards."""

    stores_calls_whole: bool = True
    """Whether readers see all items of a call at once; the port lets each be seen by itself."""

    longest_batch: int = 3_750
    """Responses that are more than one statement or one request may carry."""

    examples: int = at_length(15, 50)
    """Examples of a property: on a server few, since the adapters of this process have many."""


@asynccontextmanager
async def _memory() -> AsyncIterator[Database]:
    yield partial(MemoryStore, StoreState())


@asynccontextmanager
async def _sketch() -> AsyncIterator[Database]:
    yield partial(SketchStore, Server())


@asynccontextmanager
async def _sqlite_file() -> AsyncIterator[Database]:
    with tempfile.TemporaryDirectory() as folder:
        url = await sqlite.prepared_file(Path(folder) / "benchmark.db")
        yield partial(SqlStore.from_url, url)


@asynccontextmanager
async def _postgresql_database() -> AsyncIterator[Database]:
    async with postgresql.prepared_database() as url:
        yield partial(SqlStore.from_url, url)


@asynccontextmanager
async def _dynamodb_table() -> AsyncIterator[Database]:
    async with dynamodb.new_table() as url:
        yield partial(DynamoDBStore.from_url, url)


MEMORY = StoreAdapter("memory", _memory)
SKETCH = StoreAdapter("sketch", _sketch)
SQLITE = StoreAdapter("sqlite", _sqlite_file)
POSTGRESQL = StoreAdapter("postgresql", _postgresql_database, examples=15)
DYNAMODB = StoreAdapter(
    "dynamodb", _dynamodb_table, stores_calls_whole=False, longest_batch=250, examples=10
)


@asynccontextmanager
async def opened(database: Callable[[], AnyStore]) -> AsyncIterator[AnyStore]:
    """A store that is ready for use, closed afterwards."""
    store = database()
    try:
        await store.prepare()
        yield store
    finally:
        await store.close()
