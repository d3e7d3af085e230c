"""What is special about a kind of database, and which kind an address names."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.ext.asyncio import AsyncEngine

from socratic_bench.adapters.sql import sqlite_engine, sqlite_faults
from socratic_bench.errors import InvalidSettings, StoreError

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

    create: Callable[[], None]
    """Make what the engines need to connect. Blocks. May raise a StoreError."""

    migrating: Callable[[], AsyncEngine]
    """An engine whose transactions exclude each other, whichever process they are in."""

    writing: Callable[[], AsyncEngine]
    writers: int
    """How many connections `writing` has."""

    reading: Callable[[], AsyncEngine]
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
        create=lambda: sqlite_engine.create_file(path),
        # Its transactions begin with the write lock, of which there is one.
        migrating=lambda: sqlite_engine.writing_engine(path),
        writing=lambda: sqlite_engine.writing_engine(path),
        writers=1,
        reading=lambda: sqlite_engine.reading_engine(path),
        readers=sqlite_engine.READERS,
        errors=(sqlite3.Error,),
        explain=lambda error: sqlite_faults.explain(error, path),
    )


def _postgresql(url: str) -> Backend:
    try:
        from socratic_bench.adapters.sql import (  # noqa: PLC0415 - the driver is an extra
            postgresql_address,
            postgresql_engine,
            postgresql_faults,
        )
    except ModuleNotFoundError as error:
        raise InvalidSettings(
            "PostgreSQL needs a driver that is not installed: "
            "pip install 'socratic-ai-bench[postgresql]'"
        ) from error
    address = postgresql_address.parse(url)
    return Backend(
        name=address.name,
        create=lambda: postgresql_engine.create_database(address),
        migrating=lambda: postgresql_engine.migrating_engine(address),
        writing=lambda: postgresql_engine.writing_engine(address),
        writers=postgresql_engine.WRITERS,
        reading=lambda: postgresql_engine.reading_engine(address),
        readers=postgresql_engine.READERS,
        errors=postgresql_faults.ERRORS,
        explain=lambda error: postgresql_faults.explain(error, address.name),
    )
