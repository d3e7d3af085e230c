"""Transactions that a cancellation ends as an error would: rolled back, the connection kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import Executable, Row
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

WAIT_SECONDS = 30.0
"""How long a transaction waits for a connection."""

CLOSE_SECONDS = 10.0
"""How long closing the connections may take."""

Parameters: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]]

Result = TypeVar("Result")


async def to_the_end(work: Coroutine[Any, Any, Result]) -> Result:
    """The result of `work`, of which a cancellation has to await the end.

    A driver whose thread or server is at work on a statement cannot be left alone with it: the
    connection would be lost, perhaps with the lock that it was just about to get.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        if not task.cancelled():
            task.exception()
        raise


class Transaction:
    """What may be done within a transaction."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def execute(
        self, statement: Executable, parameters: Parameters | None = None
    ) -> Sequence[Row[*tuple[Any, ...]]]:
        """Execute for these parameters, or for each of these; returns the rows it gives."""
        return await to_the_end(self._execute(statement, parameters))

    async def restart(self) -> None:
        """Undo everything so far, let go of every lock, and begin anew."""
        await to_the_end(self._restart())

    async def _restart(self) -> None:
        await self._connection.rollback()
        await self._connection.begin()

    async def _execute(
        self, statement: Executable, parameters: Parameters | None
    ) -> Sequence[Row[*tuple[Any, ...]]]:
        result = await self._connection.execute(statement, parameters)
        return result.all() if result.returns_rows else ()


class Connections:
    """An engine's connections, given out first come, first served.

    SQLAlchemy's own pool is not waited in: it wakes nobody when a cancellation costs a connection.
    """

    def __init__(self, engine: AsyncEngine, size: int) -> None:
        self._engine = engine
        self._free = asyncio.Semaphore(size)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """A transaction, committed at the end, rolled back after an error or a cancellation.

        Raises TimeoutError if no connection becomes free in time.
        """
        async with asyncio.timeout(WAIT_SECONDS):
            await self._free.acquire()
        connection = self._engine.connect()
        try:
            await to_the_end(_begin(connection))
            yield Transaction(connection)
            await to_the_end(connection.commit())
        finally:
            try:
                await to_the_end(_end(connection))
            finally:
                self._free.release()

    async def close(self) -> None:
        """Close the connections, none of which may be in use; one that does not close is left."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._engine.dispose()


async def _begin(connection: AsyncConnection) -> None:
    await connection.start()
    await connection.begin()


async def _end(connection: AsyncConnection) -> None:
    if connection.sync_connection is not None:
        await connection.close()
