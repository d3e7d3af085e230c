"""A prepared SQLite database for each test: a copy of one that was migrated once.

Migrations take longer than most tests. Tests of migrations and of SQLite itself prepare their own.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from socratic_bench.adapters.stores.sql.store import SqlStore

NAME = "benchmark.db"

_MIGRATED: list[bytes] = []
"""The content of a database with the tables of this version and no rows, once it is made."""


@asynccontextmanager
async def prepared_store(folder: Path) -> AsyncIterator[SqlStore]:
    """A store over a database of its own in this folder, closed afterwards."""
    if not _MIGRATED:
        _MIGRATED.append(await _migrated())
    file = folder / NAME
    await asyncio.to_thread(file.write_bytes, _MIGRATED[0])
    store = SqlStore.from_url(f"sqlite:///{file}")
    try:
        yield store
    finally:
        await store.close()


async def _migrated() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, NAME)
        store = SqlStore.from_url(f"sqlite:///{file}")
        await store.prepare()
        await store.close()
        return await asyncio.to_thread(file.read_bytes)
