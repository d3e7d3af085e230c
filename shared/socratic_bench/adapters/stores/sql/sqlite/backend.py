"""The backend of SQLite."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from socratic_bench.adapters.stores.sql.backend import ADDRESSES, Backend
from socratic_bench.adapters.stores.sql.sqlite import engine, errors
from socratic_bench.adapters.stores.sql.sqlite.dialect import SQLiteDialect
from socratic_bench.errors import InvalidSettings

_SCHEME: Final = "sqlite:///"


def sqlite_backend(url: str) -> Backend:
    """Return the backend of `sqlite:///path`. Raises InvalidSettings without a path."""
    name = url.removeprefix(_SCHEME)
    if not url.startswith(_SCHEME) or not name or name.startswith(":"):
        raise InvalidSettings(f"{url!r} names no file: {ADDRESSES}")
    path = Path(name).absolute()
    return Backend(
        name=str(path),
        dialect=SQLiteDialect(),
        create=lambda: engine.create_file(path),
        migrate=lambda work: engine.migrate(path, work),
        writing=lambda: engine.writing_engine(path),
        writers=1,
        reading=lambda: engine.reading_engine(path),
        readers=engine.READERS,
        errors=(sqlite3.Error, OverflowError),
        explain=lambda error: errors.explain(error, path),
    )
