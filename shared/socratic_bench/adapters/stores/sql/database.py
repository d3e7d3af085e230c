"""The database of a store: its schema, its reading and its writing transactions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial

from sqlalchemy import Executable
from sqlalchemy.exc import SQLAlchemyError

from socratic_bench.adapters.stores.sql.backend import Backend
from socratic_bench.adapters.stores.sql.dialect import Dialect
from socratic_bench.adapters.stores.sql.migrations.reading import (
    OLDEST_READER,
    REVISION,
    refuse_unreadable,
)
from socratic_bench.adapters.stores.sql.migrations.upgrade import HEAD, upgrade
from socratic_bench.adapters.stores.sql.transactions import (
    WAIT_SECONDS,
    Connections,
    Parameters,
    Rows,
    Transaction,
)
from socratic_bench.concurrency.cancellation import finish_despite_cancel
from socratic_bench.concurrency.deadlines import wait_at_most
from socratic_bench.errors import StoreBroken, StoreError


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
            rows = await transaction.execute(REVISION)
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
                rows = await transaction.execute(OLDEST_READER)
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
