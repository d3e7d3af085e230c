"""SQLite as the database of a store: its address, its dialect and its errors."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from sqlalchemy import JSON, Column, ColumnElement, Table, bindparam, func, select, text, tuple_
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.selectable import TableValuedAlias

from socratic_bench.adapters.stores.sql.database import ADDRESSES, Backend
from socratic_bench.adapters.stores.sql.dialect import Columns, Dialect, key_of
from socratic_bench.adapters.stores.sql.sqlite import engine
from socratic_bench.adapters.stores.sql.transactions import Insertion, Parameters, Row
from socratic_bench.errors import (
    InvalidSettings,
    StoreBroken,
    StoreError,
    StoreNotWritable,
    StoreRefused,
    StoreUnavailable,
)


class SQLiteDialect(Dialect):
    """Parameters row by row, and all keys in one JSON array."""

    tables = text("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
    server_time = None

    def insert(self, table: Table) -> sqlite.Insert:
        return sqlite.insert(table)

    def insertion(self, table: Table, insert: Any) -> Insertion:
        driver = sqlite.dialect(paramstyle="named")
        only_new = str(sqlite.insert(table).on_conflict_do_nothing().compile(dialect=driver))
        return Insertion(insert.returning(*table.primary_key), key_of(table), self.rows, only_new)

    def rows(self, rows: Sequence[Row], **others: Any) -> Parameters:
        return [{**row, **others} for row in rows] if others else rows

    def among(self, values: Column[Any], parameter: str) -> ColumnElement[bool]:
        return values.in_(select(_each(parameter).c.value))

    def keyed(self, columns: Columns) -> ColumnElement[bool]:
        key = _each("keys").c.value
        parts = (func.json_extract(key, f"$[{place}]") for place in range(len(columns)))
        return tuple_(*columns).in_(select(*parts))

    def keys(self, columns: Columns, keys: Sequence[Sequence[Any]], **others: Any) -> Parameters:
        return {"keys": keys} | others

    def entry(self, text: Column[Any], *path: str) -> ColumnElement[str]:
        return func.json_extract(text, ".".join(("$", *path)))

    def with_entry(
        self, texts: Column[Any], key: Column[Any], value: Column[Any]
    ) -> ColumnElement[str]:
        return func.json_patch(func.coalesce(texts, "{}"), func.json_object(key, value))


DIALECT: Final = SQLiteDialect()
"""Has no state, so that all stores share it and its statements."""


def _each(parameter: str) -> TableValuedAlias:
    """Return the elements of a JSON parameter."""
    return func.json_each(bindparam(parameter, type_=JSON)).table_valued("value", name="given")


_PRIMARY_CODE = 0xFF
"""SQLite's extended error codes keep the primary one in their lowest byte."""

_PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS)
"""The operating system's codes for a disk that is full, fails or is read-only."""

_SAFE = "Everything stored before is safe"

_NOT_WRITABLE = {
    sqlite3.SQLITE_FULL: f"the disk is full. {_SAFE}; free some space",
    sqlite3.SQLITE_IOERR: f"reading or writing it failed. {_SAFE}; check that its disk works and "
    "has room",
    sqlite3.SQLITE_READONLY: "it is read-only; check its permissions and its folder's",
}

_BROKEN = {
    sqlite3.SQLITE_PERM: "its permissions forbid that; check them and its folder's",
    sqlite3.SQLITE_AUTH: "its permissions forbid that; check them and its folder's",
    sqlite3.SQLITE_NOTADB: "this is not an SQLite database; name another file",
    sqlite3.SQLITE_CORRUPT: "the file is damaged; restore it from a copy, or name another file",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check that its folder exists and is writable",
}


def explain(error: Exception, path: Path) -> StoreError:
    """Return this project's error for `error` of the database at `path`."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(cause, TimeoutError):
        return StoreUnavailable(f"{path}: too many wait for the database; try again later")
    if isinstance(cause, sqlite3.Error):
        return _explain_sqlite(cause, path)
    if isinstance(cause, OverflowError):
        return StoreRefused(f"{path}: it cannot hold a given value ({cause})")
    if isinstance(cause, OSError):
        kind = StoreNotWritable if cause.errno in _PASSING else StoreBroken
        return kind(f"{path}: {cause.strerror or cause} ({cause.filename or path})")
    return StoreError(f"{path}: {error}")


def _explain_sqlite(error: sqlite3.Error, path: Path) -> StoreError:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _PRIMARY_CODE
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreUnavailable(
            f"{path}: another process kept the database locked for too long; try again later"
        )
    if path.is_dir():
        return StoreBroken(f"{path}: this is a folder; name a file in it")
    is_missing = code == sqlite3.SQLITE_CANTOPEN and _could_be_made(path)
    if is_missing or "no such table" in str(error):
        return StoreBroken(f"{path}: the store is empty ({error})")
    if code in _NOT_WRITABLE:
        return StoreNotWritable(f"{path}: {_NOT_WRITABLE[code]} (SQLite says: {error}, {name})")
    if code in _BROKEN:
        return StoreBroken(f"{path}: {_BROKEN[code]} (SQLite says: {error}, {name})")
    return StoreError(f"{path}: SQLite says: {error} ({name})")


def _could_be_made(path: Path) -> bool:
    """Whether a reader misses the file in a writable folder."""
    return not path.exists() and path.parent.is_dir() and os.access(path.parent, os.W_OK)


_SCHEME: Final = "sqlite:///"


def sqlite_backend(url: str) -> Backend:
    """Return the backend of `sqlite:///path`. Raises InvalidSettings without a path."""
    name = url.removeprefix(_SCHEME)
    if not url.startswith(_SCHEME) or not name or name.startswith(":"):
        raise InvalidSettings(f"{url!r} names no file: {ADDRESSES}")
    path = Path(name).absolute()
    return Backend(
        name=str(path),
        dialect=DIALECT,
        create=lambda: engine.create_file(path),
        migrate=lambda work: engine.migrate(path, work),
        writing=lambda: engine.writing_engine(path),
        writers=1,
        reading=lambda: engine.reading_engine(path),
        readers=engine.READERS,
        errors=(sqlite3.Error, OverflowError),
        explain=lambda error: explain(error, path),
    )
