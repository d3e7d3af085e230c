"""PostgreSQL as the SQL store needs it: several writers, readers of one state, and deadlines.

Every wait ends: for a connection, for an answer, for a lock of another. The server ends a
transaction, and lets go of its locks, when whoever began it does nothing for too long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Protocol

import asyncpg  # type: ignore[import-untyped]
from sqlalchemy import Connection, ExceptionContext, event, text
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from socratic_bench.adapters.sql.postgresql.address import PostgreSQLAddress
from socratic_bench.adapters.sql.postgresql.errors import ERRORS, explain, has_lost_track
from socratic_bench.adapters.sql.postgresql.sessions import NativeEngine
from socratic_bench.errors import StoreBroken

WRITERS = 4
"""How many of one process may write at a time: leases, responses, scores."""

READERS = 4
"""How many of one process may read at a time."""

CONNECT_SECONDS = 10.0
# D-112: a longer wait would outlast a service's deadline to start.
LOCK_SECONDS = 15.0
"""How long a statement waits for another transaction, be it a migration."""

STATEMENT_SECONDS = 30.0
IDLE_SECONDS = 60.0
"""How long a transaction may stand still before the server ends it."""

MIGRATION_SECONDS = 300.0
"""How long a statement of a migration may take."""

ANSWER_SECONDS = 5.0
"""How much longer than the server's own deadline its answer is waited for."""

# D-109: the planner's statistics are wrong in a new database's first minutes.
_BY_KEY = {
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "plan_cache_mode": "force_custom_plan",
}
"""Every lookup of the store is by key. Of tables that have just begun to grow the server has no
statistics; it would take reading them wholly for quicker, and keep to that plan for a while."""

_ONLY_READ = "SET default_transaction_read_only = on"
"""No setting to connect with: the driver would take the server for one that cannot be written to,
and `target_session_attrs=read-write` in an address would fit none."""

_MIGRATION_LOCK = 0x536F6372_61746963
"""The key of the advisory lock on the schema of a database: "Socratic" in ASCII."""

_MAINTENANCE = ("postgres", "template1")
"""Databases from which another can be created: a server has one of them."""

_NOT_THIS_ONE = (
    OSError,
    asyncpg.CannotConnectNowError,
    asyncpg.TargetServerAttributeNotMatched,
)
"""Why another host of the same address is tried."""

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
    """An engine whose transactions see, statement by statement, what others have committed."""
    settings = {"default_transaction_isolation": "read committed", **_BY_KEY}
    return NativeEngine(_engine(address, WRITERS, settings, statement_seconds=STATEMENT_SECONDS))


def reading_engine(address: PostgreSQLAddress) -> NativeEngine:
    """An engine whose transactions read one state of the database, and wait for no writer."""
    settings = {"default_transaction_isolation": "repeatable read", **_BY_KEY}
    return NativeEngine(
        _engine(address, READERS, settings, statement_seconds=STATEMENT_SECONDS, first=_ONLY_READ)
    )


def migrate(address: PostgreSQLAddress, work: Callable[[Connection], None]) -> None:
    """Do `work` in a transaction that excludes others like it, in any process. Blocks.

    In a loop of its own, since a connection belongs to the loop it was opened in.
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
    """Make sure that the database is there, and can hold any text. Blocks.

    Raises StoreBroken, or StoreUnavailable, where it is not there afterwards.
    """
    asyncio.run(_create_database(address))


def _engine(
    address: PostgreSQLAddress,
    connections: int,
    settings: dict[str, str],
    *,
    statement_seconds: float,
    first: str = "",
) -> AsyncEngine:
    """With `first`, every connection begins with this statement."""
    deadlines = {
        "lock_timeout": _milliseconds(LOCK_SECONDS),
        "statement_timeout": _milliseconds(statement_seconds),
        "idle_in_transaction_session_timeout": _milliseconds(IDLE_SECONDS),
    }

    async def connect() -> asyncpg.Connection:
        connection = await _connect(
            address, {**settings, **deadlines}, answer_seconds=statement_seconds + ANSWER_SECONDS
        )
        try:
            if first:
                await connection.execute(first)
        except BaseException:
            connection.terminate()
            raise
        return connection

    engine = create_async_engine(
        "postgresql+asyncpg://",
        async_creator=connect,
        pool_size=connections,
        max_overflow=0,
        # A transaction is committed or rolled back before its connection is returned.
        pool_reset_on_return=None,
        # They are what models and students said: nothing for an error message.
        hide_parameters=True,
    )
    event.listen(engine.sync_engine, "checkout", _replace_closed)
    event.listen(engine.sync_engine, "handle_error", _give_up_lost)
    return engine


# D-111: the driver would spend all of its time on the first host.
async def _connect(
    address: PostgreSQLAddress,
    settings: dict[str, str],
    *,
    answer_seconds: float = MIGRATION_SECONDS,
    database: str | None = None,
) -> asyncpg.Connection:
    """A connection to the first host that answers in its part of the time.

    The driver tries them by itself, but waits for one that is silent until no time is left.
    """
    *others, last = address.each_host
    connect = partial(
        asyncpg.connect,
        database=database,
        timeout=CONNECT_SECONDS / (1 + len(others)),
        command_timeout=answer_seconds,
        server_settings={"application_name": "socratic-bench", "jit": "off", **settings},
    )
    for host in others:
        with suppress(*_NOT_THIS_ONE):
            return await connect(host)
    return await connect(last)


def _replace_closed(connection: _Adapted, _record: object, _proxy: object) -> None:
    """Have the pool connect anew where the server has closed a connection, as in a restart.

    The driver has noticed by itself: asking the server each time would take as long as a statement.
    """
    # D-110: `pool_pre_ping` would cost a round trip for each transaction.
    if connection.driver_connection.is_closed():
        raise DisconnectionError("the server closed this connection")


def _give_up_lost(context: ExceptionContext) -> None:
    """Have a connection thrown away, and no other, of which the driver has lost track."""
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
    """Whether the database is there. Raises StoreBroken if there is text that it cannot hold."""
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
            return  # another process was just creating it too
        except _REFUSALS as error:
            refusal = error
        else:
            return
    raise StoreBroken(
        f"{address.name}: there is no such database, and this user may not create it; "
        f"have it created with `createdb {address.database}` (PostgreSQL says: {refusal})"
    ) from refusal


async def _create_from(maintenance: str, address: PostgreSQLAddress) -> None:
    name = address.database.replace('"', '""')
    connection = await _connect(address, {}, database=maintenance)
    try:
        # As template0 has no text in it, any encoding will do.
        await connection.execute(
            f'CREATE DATABASE "{name}" TEMPLATE template0 '
            "ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'"
        )
    finally:
        await connection.close(timeout=CONNECT_SECONDS)


def _milliseconds(seconds: float) -> str:
    return str(round(seconds * 1000))
