"""PostgreSQL's engines: several writers, readers of one state, and deadlines.

Every wait has a deadline: for a connection, an answer or a lock. The server ends an idle
transaction and releases its locks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from secrets import token_hex
from typing import Protocol

import asyncpg  # type: ignore[import-untyped]
from sqlalchemy import Connection, ExceptionContext, Executable, event, text
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from socratic_bench.adapters.stores.sql.postgresql.address import PostgreSQLAddress
from socratic_bench.adapters.stores.sql.postgresql.errors import (
    ERRORS,
    POOLED,
    explain,
    has_lost_track,
)
from socratic_bench.adapters.stores.sql.transactions import Insertion, Keys, Parameters, Row, Rows
from socratic_bench.errors import StoreBroken


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


WRITERS = 4
"""Writing connections of one process: leases, responses, scores."""

READERS = 4
"""Reading connections of one process."""

OLDEST_SERVER = 15
"""The oldest PostgreSQL that the tests run on."""

CONNECT_SECONDS = 10.0
# A longer wait would outlast a service's deadline to start.
LOCK_SECONDS = 15.0
"""Seconds that a statement waits for another transaction, such as a migration."""

STATEMENT_SECONDS = 30.0
IDLE_SECONDS = 60.0
"""Seconds after which the server ends an idle transaction."""

MIGRATION_SECONDS = 300.0
"""Seconds that a statement of a migration may take."""

ANSWER_SECONDS = 5.0
"""Seconds that the driver waits beyond the server's own deadline."""

# D-109: the planner's statistics are wrong in a new database's first minutes.
_BY_KEY = {
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "plan_cache_mode": "force_custom_plan",
}
"""Every lookup of the store is by key. The server has no statistics of new tables; it would plan
full scans of them, and keep these plans for a while."""

_MIGRATION_LOCK = 0x536F6372_61746963
"""The key of the advisory lock on the schema of a database: "Socratic" in ASCII."""

_MAINTENANCE = ("postgres", "template1")
"""Databases for connections that create another; every server has one of them."""

_TRY_NEXT_HOST = (
    OSError,
    asyncpg.CannotConnectNowError,
    asyncpg.TargetServerAttributeNotMatched,
)
"""Errors after which the engine tries another host of the same address."""

_REFUSALS = (
    asyncpg.InvalidCatalogNameError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InsufficientPrivilegeError,
)


class _Adapted(Protocol):
    """SQLAlchemy's connection around that of the driver."""

    @property
    def driver_connection(self) -> asyncpg.Connection: ...


def writing_engine(address: PostgreSQLAddress) -> NativeEngine:
    """Return an engine whose statements each see all earlier commits of others."""
    settings = {"default_transaction_isolation": "read committed", **_BY_KEY}
    return NativeEngine(_engine(address, WRITERS, settings, statement_seconds=STATEMENT_SECONDS))


def reading_engine(address: PostgreSQLAddress) -> NativeEngine:
    """Return an engine whose transactions read one state of the database, without waiting."""
    settings = {
        "default_transaction_isolation": "repeatable read",
        "default_transaction_read_only": "on",
        **_BY_KEY,
    }
    return NativeEngine(_engine(address, READERS, settings, statement_seconds=STATEMENT_SECONDS))


def migrate(address: PostgreSQLAddress, work: Callable[[Connection], None]) -> None:
    """Do `work` in a transaction that excludes other migrations, in any process. Blocks.

    It uses its own event loop, since a connection belongs to the loop that opened it.
    """

    def lock_and_work(connection: Connection) -> None:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
        work(connection)

    async def connect_and_work() -> None:
        engine = _engine(address, 1, {}, statement_seconds=MIGRATION_SECONDS)
        try:
            async with engine.begin() as connection:
                await connection.run_sync(lock_and_work)
        finally:
            await engine.dispose()

    asyncio.run(connect_and_work())


def create_database(address: PostgreSQLAddress) -> None:
    """Create the database if it is missing, and check that it can hold any text. Blocks.

    Raises StoreBroken or StoreUnavailable if the database is still missing.
    """
    asyncio.run(_create_database(address))


def _engine(
    address: PostgreSQLAddress,
    connections: int,
    settings: dict[str, str],
    *,
    statement_seconds: float,
) -> AsyncEngine:
    deadlines = {
        "lock_timeout": _milliseconds(LOCK_SECONDS),
        "statement_timeout": _milliseconds(statement_seconds),
        "idle_in_transaction_session_timeout": _milliseconds(IDLE_SECONDS),
    }

    async def connect() -> asyncpg.Connection:
        return await _connect(
            address, {**settings, **deadlines}, answer_seconds=statement_seconds + ANSWER_SECONDS
        )

    engine = create_async_engine(
        "postgresql+asyncpg://",
        async_creator=connect,
        pool_size=connections,
        max_overflow=0,
        # A transaction is committed or rolled back before its connection is returned.
        pool_reset_on_return=None,
        # Parameters hold texts of models and students, which errors must not quote.
        hide_parameters=True,
    )
    event.listen(engine.sync_engine, "checkout", _replace_closed)
    event.listen(engine.sync_engine, "handle_error", _give_up_lost)
    return engine


# The driver would spend all of its time on the first host.
async def _connect(
    address: PostgreSQLAddress,
    settings: dict[str, str],
    *,
    answer_seconds: float = MIGRATION_SECONDS,
    database: str | None = None,
) -> asyncpg.Connection:
    """Connect to the first host that answers within its part of the time.

    The driver can try hosts itself, but would spend all the time on a silent one.
    """
    *others, last = address.each_host
    connect = partial(
        asyncpg.connect,
        database=database,
        timeout=CONNECT_SECONDS / (1 + len(others)),
        command_timeout=answer_seconds,
        server_settings={"application_name": "socratic-bench"},
    )
    for host in others:
        with suppress(*_TRY_NEXT_HOST):
            return await _opened(address, partial(connect, host), settings)
    return await _opened(address, partial(connect, last), settings)


_FAILS_IF_SHARED = (
    "SELECT 1 / (current_setting('socratic.session', true) IS DISTINCT FROM '{}')::int"
)
"""Divides by zero in a session with this mark."""

_own_sessions: set[str] = set()
"""The addresses, for this process, whose connections each have a session of their own."""


async def _opened(
    address: PostgreSQLAddress,
    connect: Callable[[], Awaitable[asyncpg.Connection]],
    settings: dict[str, str],
) -> asyncpg.Connection:
    """Return a connection with these settings.

    They are statements: a pooler refuses them in the beginning of a connection, and with read-only
    there `target_session_attrs=read-write` in an address would match no server.
    """
    connection = _supported(address, await connect())
    try:
        if address.url not in _own_sessions:
            await _check_session(address, connection, await connect())
            _own_sessions.add(address.url)
        together = {"jit": "off", **settings}
        await connection.execute("; ".join(f"SET {name} = '{at}'" for name, at in together.items()))
    except BaseException:
        connection.terminate()
        raise
    return connection


async def _check_session(
    address: PostgreSQLAddress, first: asyncpg.Connection, second: asyncpg.Connection
) -> None:
    """Raise StoreBroken if two connections share a session, as a pooler has them share it.

    A setting of one client would then hold for others, and a prepared statement would be missing.
    """
    mark = token_hex(8)
    try:
        await first.execute(f"SET socratic.session = '{mark}'")
        async with second.transaction():
            await second.execute(_FAILS_IF_SHARED.format(mark))
    except asyncpg.DivisionByZeroError:
        raise StoreBroken(f"{address.name}: {POOLED}") from None
    finally:
        second.terminate()


def _supported(address: PostgreSQLAddress, connection: asyncpg.Connection) -> asyncpg.Connection:
    """Return the connection. Raises StoreBroken if its server is too old."""
    version = connection.get_server_version()
    if version.major < OLDEST_SERVER:
        connection.terminate()
        raise StoreBroken(
            f"{address.name}: the server is PostgreSQL {version.major}.{version.micro}, which is "
            f"too old; upgrade it to {OLDEST_SERVER} or newer"
        )
    return connection


def _replace_closed(connection: _Adapted, _record: object, _proxy: object) -> None:
    """Have the pool replace a connection that the server closed, as in a restart.

    The driver notices a closed connection: asking the server would take as long as a statement.
    """
    # `pool_pre_ping` would cost a round trip for each transaction.
    if connection.driver_connection.is_closed():
        raise DisconnectionError("the server closed this connection")


def _give_up_lost(context: ExceptionContext) -> None:
    """Have the pool drop this connection, and no other, if the driver lost track of it."""
    if has_lost_track(context.original_exception.__cause__):
        context.is_disconnect = True
        context.invalidate_pool_on_disconnect = False


async def _create_database(address: PostgreSQLAddress) -> None:
    try:
        if not await _exists(address):
            await _create_missing(address)
            await _exists(address)
    except (*ERRORS, OSError) as error:
        raise explain(error, address.name) from error


async def _exists(address: PostgreSQLAddress) -> bool:
    """Whether the database exists. Raises StoreBroken if its encoding cannot hold every text."""
    try:
        connection = await _connect(address, {})
    except asyncpg.InvalidCatalogNameError:
        return False
    try:
        encoding = connection.get_settings().server_encoding
    finally:
        await connection.close(timeout=CONNECT_SECONDS)
    if encoding != "UTF8":
        raise StoreBroken(
            f"{address.name}: its encoding is {encoding}, which cannot hold every text; "
            f"use a database made with `createdb --encoding UTF8 --template template0 NAME`"
        )
    return True


async def _create_missing(address: PostgreSQLAddress) -> None:
    refusal: Exception | None = None
    for maintenance in _MAINTENANCE:
        try:
            await _create_from(maintenance, address)
        except (asyncpg.DuplicateDatabaseError, asyncpg.UniqueViolationError):
            return  # another process has just created it
        except _REFUSALS as error:
            refusal = error
        else:
            return
    raise StoreBroken(
        f"{address.name}: the database is missing, and this user may not create it; "
        f"have it created with `createdb {address.database}` (PostgreSQL says: {refusal})"
    ) from refusal


async def _create_from(maintenance: str, address: PostgreSQLAddress) -> None:
    name = address.database.replace('"', '""')
    connection = await _connect(address, {}, database=maintenance)
    try:
        # template0 has no text, so it allows any encoding.
        await connection.execute(
            f'CREATE DATABASE "{name}" TEMPLATE template0 '
            "ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'"
        )
    finally:
        await connection.close(timeout=CONNECT_SECONDS)


def _milliseconds(seconds: float) -> str:
    return str(round(seconds * 1000))
