"""PostgreSQL's sessions, with an asynchronous driver."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Executable, event
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from socratic_bench.adapters.stores.sql.transactions import Insertion, Keys, Parameters, Row, Rows


class NativeSession:
    """A connection of an asynchronous engine."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def execute(self, statement: Executable, parameters: Parameters | None) -> Rows:
        if self._connection.sync_connection is None:
            await self._connection.start()
        result = await self._connection.execute(statement, parameters)
        return result.all() if result.returns_rows else ()

    async def insert(self, insertion: Insertion, rows: Sequence[Row], others: Row) -> Keys:
        return await self.execute(insertion.statement, insertion.parameters(rows, **others))

    async def rollback(self) -> None:
        await self._connection.rollback()

    async def commit(self) -> None:
        if self._connection.sync_connection is not None:
            await self._connection.commit()
            await self._connection.close()

    async def close(self) -> None:
        if self._connection.sync_connection is not None:
            await self._connection.close()


class NativeEngine:
    """An asynchronous engine."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._outside_transactions = engine.execution_options(isolation_level="AUTOCOMMIT")
        self.connects = 0
        event.listen(engine.sync_engine, "connect", self._count)

    def session(self) -> NativeSession:
        return NativeSession(self._engine.connect())

    async def look_up(self, statement: Executable, parameters: Parameters | None) -> Rows:
        async with self._outside_transactions.connect() as connection:
            return (await connection.execute(statement, parameters)).all()

    async def dispose(self) -> None:
        await self._engine.dispose()

    def _count(self, _connection: object, _record: object) -> None:
        self.connects += 1
