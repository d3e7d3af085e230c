"""A database as the store uses it: transactions that read, transactions that write, one end."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from socratic_bench.adapters.sql import faults, sqlite_engine
from socratic_bench.adapters.sql.migrations.upgrade import upgrade
from socratic_bench.adapters.sql.transactions import (
    WAIT_SECONDS,
    Connections,
    Transaction,
    to_the_end,
)
from socratic_bench.errors import InvalidSettings, StoreError

_SQLITE = "sqlite:///"
_ADDRESS = "give sqlite:///path/to/file.db, or sqlite:////path from the root"


@dataclass(frozen=True, slots=True)
class Backend:
    """What is special about a kind of database."""

    name: str
    """Which database, as people know it; without a password."""

    create: Callable[[], None]
    """Make what the engines need to connect. Blocks."""

    writing: Callable[[], AsyncEngine]
    writers: int
    """How many connections `writing` has."""

    reading: Callable[[], AsyncEngine]
    readers: int
    explain: Callable[[Exception], StoreError]
    """This project's error for one of the driver, SQLAlchemy or the operating system."""


def backend_for(url: str) -> Backend:
    """The backend that a store's address names. Raises InvalidSettings for any other address."""
    name = url.removeprefix(_SQLITE)
    if name == url:
        raise InvalidSettings(f"{url!r} is no address of an SQL store: {_ADDRESS}")
    if not name or name.startswith(":"):
        raise InvalidSettings(f"{url!r} names no file: {_ADDRESS}")
    path = Path(name).absolute()
    return Backend(
        name=str(path),
        create=lambda: sqlite_engine.create_file(path),
        writing=lambda: sqlite_engine.writing_engine(path),
        writers=1,
        reading=lambda: sqlite_engine.reading_engine(path),
        readers=sqlite_engine.READERS,
        explain=lambda error: faults.explain(error, path),
    )


class Database:
    """Gives out transactions, and closes once the last of them has ended."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        engine = backend.writing()
        self.dialect: str = engine.dialect.name
        """SQLAlchemy's name of the dialect."""
        self._writing = Connections(engine, backend.writers)
        self._reading = Connections(backend.reading(), backend.readers)
        self._in_use = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._closed = False

    @property
    def name(self) -> str:
        """Which database, as people know it."""
        return self._backend.name

    async def prepare(self) -> None:
        """Create the database and bring its schema up to date.

        In a thread: Alembic reads and runs files. In a loop of its own there, since a connection
        belongs to the loop it was opened in.
        """
        with self._in_use_by_one():
            await to_the_end(asyncio.to_thread(self._prepare))

    @asynccontextmanager
    async def write(self) -> AsyncIterator[Transaction]:
        """A transaction that may write, committed at the end, rolled back after any error."""
        with self._in_use_by_one():
            async with self._writing.transaction() as transaction:
                yield transaction

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Transaction]:
        """A transaction that reads one state of the database."""
        with self._in_use_by_one():
            async with self._reading.transaction() as transaction:
                yield transaction

    async def close(self) -> None:
        """Refuse new transactions, wait for those under way, close all connections."""
        self._closed = True
        with suppress(TimeoutError):
            async with asyncio.timeout(WAIT_SECONDS):
                await self._idle.wait()
        await self._writing.close()
        await self._reading.close()

    def _prepare(self) -> None:
        self._backend.create()
        asyncio.run(self._upgrade())

    async def _upgrade(self) -> None:
        engine = self._backend.writing()
        try:
            async with engine.begin() as connection:
                await connection.run_sync(upgrade, self._backend.name)
        finally:
            await engine.dispose()

    @contextmanager
    def _in_use_by_one(self) -> Iterator[None]:
        if self._closed:
            raise StoreError(f"{self._backend.name}: the store was closed; open it anew")
        self._in_use += 1
        self._idle.clear()
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error, OSError) as error:
            raise self._backend.explain(error) from error
        finally:
            self._in_use -= 1
            if not self._in_use:
                self._idle.set()
