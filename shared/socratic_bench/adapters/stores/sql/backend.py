"""The kinds of database, and the choice of one by an address."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from socratic_bench.adapters.stores.sql.dialect import Dialect
from socratic_bench.adapters.stores.sql.transactions import Engine
from socratic_bench.errors import InvalidSettings, StoreError
from socratic_bench.extras import require_package

ADDRESSES: Final = (
    "give sqlite:///path/to/file.db, or sqlite:////path from the root, or "
    "postgresql://user:password@host:port/database"
)


@dataclass(frozen=True, slots=True)
class Backend:
    """The differences of one kind of database."""

    name: str
    """The database for people, without a password."""

    dialect: Dialect
    """Makes its statements."""

    create: Callable[[], None]
    """Creates the file or database that engines connect to. Blocks. May raise a StoreError."""

    migrate: Callable[[Callable[[Connection], None]], None]
    """Does work in a transaction that excludes other migrations, in any process. Blocks."""

    writing: Callable[[], Engine]
    writers: int
    """The number of connections of `writing`."""

    reading: Callable[[], Engine]
    """An engine whose transactions only read, each one state of the database."""

    readers: int
    errors: tuple[type[Exception], ...]
    """The driver's errors, besides those of SQLAlchemy and of the operating system."""

    explain: Callable[[Exception], StoreError]
    """Returns this project's error for one of the driver, SQLAlchemy or the operating system."""


def backend_for(url: str) -> Backend:
    """Return the backend of a store's address. Raises InvalidSettings for any other address."""
    scheme, separator, _ = url.partition("://")
    if scheme == "sqlite" and separator:
        from socratic_bench.adapters.stores.sql.sqlite.backend import (  # noqa: PLC0415 - a circular import
            sqlite_backend,
        )

        return sqlite_backend(url)
    if scheme == "postgresql" and separator:
        require_package(
            "asyncpg", needed_by="a store in PostgreSQL", extra="socratic-ai-bench[postgresql]"
        )
        from socratic_bench.adapters.stores.sql.postgresql.backend import (  # noqa: PLC0415 - an optional dependency
            postgresql_backend,
        )

        return postgresql_backend(url)
    # The rest of the address may hold a password.
    named = f"{scheme}://…" if separator else repr(url)
    raise InvalidSettings(f"{named} is not an address of an SQL store: {ADDRESSES}")
