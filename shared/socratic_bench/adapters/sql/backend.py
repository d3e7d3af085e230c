"""What is special about a kind of database, and which kind an address names."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection

from socratic_bench.adapters.sql import sqlite_engine, sqlite_errors
from socratic_bench.adapters.sql.transactions import Engine
from socratic_bench.errors import InvalidSettings, StoreError
from socratic_bench.extras import require_package

_SQLITE = "sqlite:///"
_ADDRESSES = (
    "give sqlite:///path/to/file.db, or sqlite:////path from the root, or "
    "postgresql://user:password@host:port/database"
)


@dataclass(frozen=True, slots=True)
class Backend:
    """What is special about a kind of database."""

    name: str
    """Which database, as people know it; without a password."""

    dialect: str
    """SQLAlchemy's name of it."""

    create: Callable[[], None]
    """Make what the engines need to connect. Blocks. May raise a StoreError."""

    migrate: Callable[[Callable[[Connection], None]], None]
    """Do something in a transaction that excludes all others like it, in any process. Blocks."""

    writing: Callable[[], Engine]
    writers: int
    """How many connections `writing` has."""

    reading: Callable[[], Engine]
    """An engine whose transactions write nothing, and read one state of the database."""

    readers: int
    errors: tuple[type[Exception], ...]
    """What the driver raises, besides the errors of SQLAlchemy and of the operating system."""

    explain: Callable[[Exception], StoreError]
    """This project's error for one of the driver, SQLAlchemy or the operating system."""


def backend_for(url: str) -> Backend:
    """The backend that a store's address names. Raises InvalidSettings for any other address."""
    if url.startswith(_SQLITE):
        return _sqlite(url.removeprefix(_SQLITE))
    scheme, separator, _ = url.partition("://")
    if scheme == "postgresql" and separator:
        return _postgresql(url)
    # What follows the scheme may hold a password.
    named = f"{scheme}://…" if separator else repr(url)
    raise InvalidSettings(f"{named} is no address of an SQL store: {_ADDRESSES}")


def _sqlite(name: str) -> Backend:
    if not name or name.startswith(":"):
        raise InvalidSettings(f"{_SQLITE + name!r} names no file: {_ADDRESSES}")
    path = Path(name).absolute()
    return Backend(
        name=str(path),
        dialect="sqlite",
        create=lambda: sqlite_engine.create_file(path),
        migrate=lambda work: sqlite_engine.migrate(path, work),
        writing=lambda: sqlite_engine.writing_engine(path),
        writers=1,
        reading=lambda: sqlite_engine.reading_engine(path),
        readers=sqlite_engine.READERS,
        errors=(sqlite3.Error, OverflowError),
        explain=lambda error: sqlite_errors.explain(error, path),
    )


def _postgresql(url: str) -> Backend:
    require_package(
        "asyncpg", needed_by="a store in PostgreSQL", extra="socratic-ai-bench[postgresql]"
    )
    from socratic_bench.adapters.sql import (  # noqa: PLC0415 - the driver is an extra
        postgresql_address,
        postgresql_engine,
        postgresql_errors,
    )

    address = postgresql_address.parse(url)
    return Backend(
        name=address.name,
        dialect="postgresql",
        create=lambda: postgresql_engine.create_database(address),
        migrate=lambda work: postgresql_engine.migrate(address, work),
        writing=lambda: postgresql_engine.writing_engine(address),
        writers=postgresql_engine.WRITERS,
        reading=lambda: postgresql_engine.reading_engine(address),
        readers=postgresql_engine.READERS,
        errors=postgresql_errors.ERRORS,
        explain=lambda error: postgresql_errors.explain(error, address.name),
    )
