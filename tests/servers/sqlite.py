"""SQLite databases for tests, made once in each process and copied from then on."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from socratic_bench.adapters.stores.sql.store import SqlStore

_PREPARED: list[bytes] = []
"""A database with the tables of this version and nothing in them; or nothing yet."""


async def prepared_file(path: Path) -> str:
    """The address of a database at `path` with the tables of this version and nothing in them.

    To make the tables takes longer than most tests.
    """
    if not _PREPARED:
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / "made.db"
            store = SqlStore.from_url(f"sqlite:///{made}")
            await store.prepare()
            await store.close()
            _PREPARED.append(made.read_bytes())
    await asyncio.to_thread(path.write_bytes, _PREPARED[0])
    return f"sqlite:///{path}"
