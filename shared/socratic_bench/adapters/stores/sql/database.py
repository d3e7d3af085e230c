"""The database of a store: its kind, its schema, its reading and its writing transactions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from sqlalchemy import Connection, Executable
from sqlalchemy.exc import SQLAlchemyError

from socratic_bench.adapters.stores.sql.dialect import Dialect
from socratic_bench.adapters.stores.sql.migrations.upgrade import (
    FIND_OLDEST_READER,
    FIND_REVISION,
    HEAD,
    refuse_foreign,
    refuse_unreadable,
    upgrade,
)
from socratic_bench.adapters.stores.sql.transactions import (
    WAIT_SECONDS,
    Connections,
    Engine,
    Parameters,
    Rows,
    Transaction,
)
from socratic_bench.concurrency.deadlines import finish_despite_cancel, wait_at_most
from socratic_bench.errors import InvalidSettings, StoreBroken, StoreError
from socratic_bench.plugins import require_package

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
    raise InvalidSettings(f"the store's address is not one of an SQL store: {ADDRESSES}")


class Database:
    """Opens transactions, and closes after the last of them."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._errors: tuple[type[Exception], ...] = (SQLAlchemyError, OSError, *backend.errors)
        self._writing = Connections(backend.writing(), backend.writers)
        self._reading = Connections(backend.reading(), backend.readers)
        self._in_use = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._closed = False

    @property
    def name(self) -> str:
        """The database for people."""
        return self._backend.name

    @property
    def dialect(self) -> Dialect:
        """Makes the statements of this database."""
        return self._backend.dialect

    @property
    def writing_connects(self) -> int:
        """The number of connections for writing opened so far: a new one may reach a server that
        lost commits of earlier ones.
        """
        return self._writing.connects

    async def prepare(self) -> None:
        """Create the database and bring its schema up to date.

        It works in a thread: Alembic reads and runs files.
        """
        with self._in_use_by_one():
            await finish_despite_cancel(asyncio.to_thread(self._prepare))

    async def check_readable(self) -> None:
        """Check that this version can read the present schema. Raises StoreBroken."""
        async with self.read() as transaction:
            tables = {str(row[0]) for row in await transaction.execute(self.dialect.tables)}
        refuse_foreign(self.name, tables)
        async with self.read() as transaction:
            rows = await transaction.execute(FIND_REVISION)
        if not rows:
            raise StoreBroken(f"{self.name}: the store is empty")
        revision = str(rows[0][0])
        if revision != HEAD:
            oldest = await self._oldest_reader() if revision > HEAD else None
            refuse_unreadable(self.name, revision, oldest)

    async def _oldest_reader(self) -> str | None:
        """Return the oldest version that may use the database; None if unknown."""
        try:
            async with self.read() as transaction:
                rows = await transaction.execute(FIND_OLDEST_READER)
        except StoreBroken:
            return None  # without the table
        return str(rows[0][0]) if rows else None

    @asynccontextmanager
    async def write(self) -> AsyncIterator[Transaction]:
        """Yield a writing transaction; commit it at the end, or roll it back after an error."""
        with self._in_use_by_one():
            async with self._writing.transaction() as transaction:
                yield transaction

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Transaction]:
        """Yield a transaction that reads one state of the database."""
        with self._in_use_by_one():
            async with self._reading.transaction() as transaction:
                yield transaction

    async def look_up(self, statement: Executable, parameters: Parameters | None = None) -> Rows:
        """Read with one statement, without the begin and the end of a transaction; returns its
        rows. Two of these may read two states of the database.
        """
        with self._in_use_by_one():
            return await self._reading.look_up(statement, parameters)

    async def close(self) -> None:
        """Refuse new transactions, wait for the open ones, close all connections."""
        self._closed = True
        await wait_at_most(WAIT_SECONDS, self._idle)
        await self._writing.close()
        await self._reading.close()

    def _prepare(self) -> None:
        self._backend.create()
        self._backend.migrate(partial(upgrade, database=self._backend.name))

    @contextmanager
    def _in_use_by_one(self) -> Iterator[None]:
        if self._closed:
            raise StoreError(f"{self._backend.name}: the store was closed; open it again")
        self._in_use += 1
        self._idle.clear()
        try:
            yield
        except self._errors as error:
            raise self._backend.explain(error) from error
        finally:
            self._in_use -= 1
            if not self._in_use:
                self._idle.set()
