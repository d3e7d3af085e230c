"""What is special about a kind of database, and which kind an address names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from socratic_bench.adapters.sql.dialect import Dialect
from socratic_bench.adapters.sql.transactions import Engine
from socratic_bench.errors import InvalidSettings, StoreError
from socratic_bench.extras import require_package

ADDRESSES: Final = (
    "give sqlite:///path/to/file.db, or sqlite:////path from the root, or "
    "postgresql://user:password@host:port/database"
)


@dataclass(frozen=True, slots=True)
class Backend:
    """What is special about a kind of database."""

    name: str
    """Which database, as people know it; without a password."""

    dialect: Dialect
    """How its statements are made."""

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
    scheme, separator, _ = url.partition("://")
    if scheme == "sqlite" and separator:
        from socratic_bench.adapters.sql.sqlite.backend import (  # noqa: PLC0415 - it imports this
            sqlite_backend,
        )

        return sqlite_backend(url)
    if scheme == "postgresql" and separator:
        require_package(
            "asyncpg", needed_by="a store in PostgreSQL", extra="socratic-ai-bench[postgresql]"
        )
        from socratic_bench.adapters.sql.postgresql.backend import (  # noqa: PLC0415 - an extra
            postgresql_backend,
        )

        return postgresql_backend(url)
    # What follows the scheme may hold a password.
    named = f"{scheme}://…" if separator else repr(url)
    raise InvalidSettings(f"{named} is no address of an SQL store: {ADDRESSES}")
