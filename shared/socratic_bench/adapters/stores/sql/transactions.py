"""Transactions that roll back and keep their connection, after an error or a cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from sqlalchemy import Executable
from sqlalchemy import Row as ResultRow

from socratic_bench.concurrency.deadlines import finish_despite_cancel

WAIT_SECONDS = 30.0
"""Seconds that a transaction waits for a connection."""

CLOSE_SECONDS = 10.0
"""Seconds that closing the connections may take."""

Parameters: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]]
Rows: TypeAlias = Sequence[ResultRow[*tuple[Any, ...]]]
Row: TypeAlias = Mapping[str, Any]
Keys: TypeAlias = Sequence[Sequence[Any]]
Execute: TypeAlias = Callable[[Executable, Parameters], Awaitable[Rows]]


@dataclass(frozen=True, slots=True)
class Insertion:
    """An `INSERT` of many rows that may meet existing ones."""

    statement: Executable
    """Returns the keys of the written rows."""

    key: tuple[str, ...]
    """The columns of a key."""

    parameters: Callable[..., Parameters]
    """Makes the parameters of `statement` from rows, and from its other parameters."""

    only_new: str | None = None
    """The driver's own statement, which writes missing rows and returns nothing; None where that
    is not faster."""


class Session(Protocol):
    """A connection in use; a transaction begins with its first statement."""

    def execute(self, statement: Executable, parameters: Parameters | None) -> Awaitable[Rows]: ...

    def insert(self, insertion: Insertion, rows: Sequence[Row], others: Row) -> Awaitable[Keys]: ...

    def rollback(self) -> Awaitable[None]: ...

    def commit(self) -> Awaitable[None]:
        """Commit and close."""
        ...

    def close(self) -> Awaitable[None]:
        """Roll back uncommitted work and return the connection, unless that is done."""
        ...


class Engine(Protocol):
    """Opens sessions."""

    @property
    def connects(self) -> int:
        """The number of connections that the engine has opened so far."""
        ...

    def session(self) -> Session:
        """Return a session, which connects on first use."""
        ...

    def look_up(self, statement: Executable, parameters: Parameters | None) -> Awaitable[Rows]:
        """Execute one statement outside of any transaction; returns its rows."""
        ...

    def dispose(self) -> Awaitable[None]:
        """Close all connections; the caller has ended their use."""
        ...


class Transaction:
    """The operations of a transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def execute(self, statement: Executable, parameters: Parameters | None = None) -> Rows:
        """Execute for these parameters, or for each set of them; returns the rows."""
        return await finish_despite_cancel(self._session.execute(statement, parameters))

    async def insert(self, insertion: Insertion, rows: Sequence[Row], **others: Any) -> Keys:
        """Insert these rows; returns the keys of the written ones."""
        return await finish_despite_cancel(self._session.insert(insertion, rows, others))

    async def restart(self) -> None:
        """Roll back, release every lock, and begin again."""
        await finish_despite_cancel(self._session.rollback())


class Connections:
    """An engine's connections, first come, first served.

    Transactions do not wait in SQLAlchemy's own pool: it wakes no waiter after a cancellation that
    costs a connection.
    """

    def __init__(self, engine: Engine, size: int) -> None:
        self._engine = engine
        self._free = asyncio.Semaphore(size)

    @property
    def connects(self) -> int:
        """The number of connections that the engine has opened so far."""
        return self._engine.connects

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """Yield a transaction; commit it, or roll it back after an error or a cancellation.

        Raises TimeoutError if no connection becomes free in time.
        """
        await self._wait_for_one()
        session = self._engine.session()
        try:
            yield Transaction(session)
            await finish_despite_cancel(session.commit())
        finally:
            try:
                await finish_despite_cancel(session.close())
            finally:
                self._free.release()

    async def look_up(self, statement: Executable, parameters: Parameters | None) -> Rows:
        """Execute one statement outside of any transaction; returns its rows.

        Raises TimeoutError if no connection becomes free in time.
        """
        await self._wait_for_one()
        try:
            return await finish_despite_cancel(self._engine.look_up(statement, parameters))
        finally:
            self._free.release()

    async def _wait_for_one(self) -> None:
        async with asyncio.timeout(WAIT_SECONDS):
            await self._free.acquire()

    async def close(self) -> None:
        """Close the connections after their use; abandon one that does not close in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._engine.dispose()
