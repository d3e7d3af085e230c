"""What the suite needs to know of a store adapter: how to come by an empty database."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass

from socratic_bench.adapters.sql.store import SqlStore
from socratic_bench.ports.store import Store

Database = Callable[[], Store]
"""Gives out a store on the same data each time, as another process would have it."""


@dataclass(frozen=True)
class StoreAdapter:
    """One adapter under test."""

    name: str
    database: Callable[[], AbstractContextManager[Database]]
    """Makes an empty database, and removes it afterwards."""


@contextmanager
def _sqlite_file() -> Iterator[Database]:
    with tempfile.TemporaryDirectory() as folder:
        yield lambda: SqlStore.from_url(f"sqlite:///{folder}/benchmark.db")


SQLITE = StoreAdapter("sqlite", _sqlite_file)


@asynccontextmanager
async def opened(database: Database) -> AsyncIterator[Store]:
    """A store that is ready for use, closed afterwards."""
    store = database()
    try:
        await store.prepare()
        yield store
    finally:
        await store.close()
