"""SQLite's sessions: each step of a transaction is one trip to a thread, with its rows.

A driver with a trip for each cursor, fetch and close takes twice the processor time of the
statements.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sqlalchemy import Connection, Engine, Executable, event

from socratic_bench.adapters.stores.sql.transactions import Insertion, Keys, Parameters, Row, Rows

Result = TypeVar("Result")


class ThreadedSession:
    """A connection of a blocking engine, used in its threads."""

    def __init__(
        self, engine: Engine, threads: ThreadPoolExecutor, on_closed: Callable[[], None]
    ) -> None:
        self._engine = engine
        self._threads = threads
        self._on_closed = on_closed
        self._connection: Connection | None = None

    def execute(self, statement: Executable, parameters: Parameters | None) -> asyncio.Future[Rows]:
        return self._in_thread(lambda: self._execute(statement, parameters))

    def insert(
        self, insertion: Insertion, rows: Sequence[Row], others: Row
    ) -> asyncio.Future[Keys]:
        return self._in_thread(lambda: self._insert(insertion, rows, others))

    def rollback(self) -> asyncio.Future[None]:
        return _nothing() if self._connection is None else self._in_thread(self._rollback)

    def commit(self) -> asyncio.Future[None]:
        return _nothing() if self._connection is None else self._in_thread(self._commit)

    def close(self) -> asyncio.Future[None]:
        if self._connection is None:
            self._on_closed()
            return _nothing()
        closing = self._in_thread(self._close)
        closing.add_done_callback(lambda _: self._on_closed())
        return closing

    def _execute(self, statement: Executable, parameters: Parameters | None) -> Rows:
        result = self._connected().execute(statement, parameters)
        return result.all() if result.returns_rows else ()

    def _insert(self, insertion: Insertion, rows: Sequence[Row], others: Row) -> Keys:
        """Insert rows in the fast way for new ones; if some exist, insert again, returning keys."""
        if insertion.only_new is not None:
            connection = self._connected()
            with connection.begin_nested() as savepoint:
                if connection.execute(insertion.only_new, rows).rowcount == len(rows):
                    return [[row[name] for name in insertion.key] for row in rows]
                savepoint.rollback()
        return self._execute(insertion.statement, insertion.parameters(rows, **others))

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = self._engine.connect()
        return self._connection

    def _rollback(self) -> None:
        if self._connection is not None:
            self._connection.rollback()

    def _commit(self) -> None:
        if self._connection is not None:
            self._connection.commit()
            self._close()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _in_thread(self, work: Callable[[], Result]) -> asyncio.Future[Result]:
        return asyncio.get_running_loop().run_in_executor(self._threads, work)


def _nothing() -> asyncio.Future[None]:
    """Return a finished future."""
    done = asyncio.get_running_loop().create_future()
    done.set_result(None)
    return done


class ThreadedEngine:
    """A blocking engine, with a thread for each connection."""

    def __init__(self, engine: Engine, connections: int) -> None:
        self._engine = engine
        self._threads = ThreadPoolExecutor(connections, thread_name_prefix="sqlite")
        self._sessions = 0
        self._is_disposed = False
        self.connects = 0
        event.listen(engine, "connect", self._count)

    def session(self) -> ThreadedSession:
        self._sessions += 1
        return ThreadedSession(self._engine, self._threads, self._session_closed)

    def look_up(self, statement: Executable, parameters: Parameters | None) -> asyncio.Future[Rows]:
        def execute() -> Rows:
            with self._engine.connect() as connection:
                return connection.execute(statement, parameters).all()

        self._sessions += 1
        looking = asyncio.get_running_loop().run_in_executor(self._threads, execute)
        looking.add_done_callback(lambda _: self._session_closed())
        return looking

    async def dispose(self) -> None:
        """Close unused connections now, and the others with their sessions, with their threads."""
        self._is_disposed = True
        try:
            await asyncio.to_thread(self._engine.dispose)
        finally:
            self._end_unused()

    def _session_closed(self) -> None:
        self._sessions -= 1
        self._end_unused()

    def _end_unused(self) -> None:
        if self._is_disposed and not self._sessions:
            self._threads.shutdown(wait=False)

    def _count(self, _connection: object, _record: object) -> None:
        self.connects += 1
