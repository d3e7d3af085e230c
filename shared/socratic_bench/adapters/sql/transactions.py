"""Transactions that a cancellation ends as an error would: rolled back, the connection kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from sqlalchemy import Executable
from sqlalchemy import Row as ResultRow

from socratic_bench.concurrency.cancellation import finish_despite_cancel

WAIT_SECONDS = 30.0
"""How long a transaction waits for a connection."""

CLOSE_SECONDS = 10.0
"""How long closing the connections may take."""

Parameters: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]]
Rows: TypeAlias = Sequence[ResultRow[*tuple[Any, ...]]]
Row: TypeAlias = Mapping[str, Any]
Keys: TypeAlias = Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Insertion:
    """An `INSERT` of many rows, with something to do about those that are there already."""

    statement: Executable
    """Gives the keys of the rows that it wrote."""

    key: tuple[str, ...]
    """The columns of a key."""

    parameters: Callable[..., Parameters]
    """Makes the parameters of `statement` from rows, and from others that it takes."""

    only_new: Executable | None = None
    """Writes rows where there is none, and gives nothing; None where that is no quicker."""


class Session(Protocol):
    """A connection in use; a transaction begins with its first statement."""

    def execute(self, statement: Executable, parameters: Parameters | None) -> Awaitable[Rows]: ...

    def insert(self, insertion: Insertion, rows: Sequence[Row], others: Row) -> Awaitable[Keys]: ...

    def rollback(self) -> Awaitable[None]: ...

    def commit(self) -> Awaitable[None]:
        """Commit, and do what `close` does: nothing is to follow."""
        ...

    def close(self) -> Awaitable[None]:
        """Roll back what is not committed and give the connection back, if that is still to do."""
        ...


class Engine(Protocol):
    """Opens sessions."""

    def session(self) -> Session:
        """A session, which connects when it first has to."""
        ...

    def dispose(self) -> Awaitable[None]:
        """Close all connections, none of which may be in use."""
        ...


class Transaction:
    """What may be done within a transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def execute(self, statement: Executable, parameters: Parameters | None = None) -> Rows:
        """Execute for these parameters, or for each of these; returns the rows it gives."""
        return await finish_despite_cancel(self._session.execute(statement, parameters))

    async def insert(self, insertion: Insertion, rows: Sequence[Row], **others: Any) -> Keys:
        """Insert these rows; returns the keys of those that were written."""
        return await finish_despite_cancel(self._session.insert(insertion, rows, others))

    async def restart(self) -> None:
        """Undo everything so far, let go of every lock, and begin anew."""
        await finish_despite_cancel(self._session.rollback())


class Connections:
    """An engine's connections, given out first come, first served.

    SQLAlchemy's own pool is not waited in: it wakes nobody when a cancellation costs a connection.
    """

    def __init__(self, engine: Engine, size: int) -> None:
        self._engine = engine
        self._free = asyncio.Semaphore(size)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """A transaction, committed at the end, rolled back after an error or a cancellation.

        Raises TimeoutError if no connection becomes free in time.
        """
        async with asyncio.timeout(WAIT_SECONDS):
            await self._free.acquire()
        session = self._engine.session()
        try:
            yield Transaction(session)
            await finish_despite_cancel(session.commit())
        finally:
            try:
                await finish_despite_cancel(session.close())
            finally:
                self._free.release()

    async def close(self) -> None:
        """Close the connections, none of which may be in use; one that does not close is left."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._engine.dispose()
