"""A PostgreSQL server for tests, and a database in it for each of them."""

from __future__ import annotations

import asyncio
import getpass
import tempfile
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import asyncpg

from socratic_bench.adapters.stores.sql.store import SqlStore
from tests.servers.discovery import (
    NotHere,
    Server,
    Source,
    at_standard_port,
    in_docker,
    in_environment,
    wait_for,
)
from tests.servers.ending import ENDING
from tests.servers.postgresql_process import PostgreSQLProcess
from tests.waiting import PATIENCE, waiting_for

ANSWER_SECONDS = 20.0
"""Seconds within which a server that can be used has answered."""

MAINTENANCE = "postgres"
"""The database from which others are made."""


@asynccontextmanager
async def new_database(*, exists: bool = True) -> AsyncIterator[str]:
    """The address of a private database; dropped afterwards. It is empty, or not even made."""
    server = await asyncio.to_thread(SERVER.address)
    name = f"socratic_test_{uuid4().hex[:16]}"
    if exists:
        await execute(at(server, MAINTENANCE), f"CREATE DATABASE {name} TEMPLATE template0")
    try:
        yield at(server, name)
    finally:
        await _drop(server, name)


@asynccontextmanager
async def prepared_database() -> AsyncIterator[str]:
    """The address of a database with the tables of this version and nothing in them.

    To make and drop a database takes longer than most tests: it is emptied, and used again.
    """
    address = _IDLE.pop() if _IDLE else await _prepared(await asyncio.to_thread(SERVER.address))
    yield address
    async with connected(address) as connection:
        await connection.execute(_END_OTHER_SESSIONS)
        tables = [row["tablename"] for row in await connection.fetch(_TABLES)]
        await connection.execute("; ".join(f"DELETE FROM {table}" for table in tables))
    _IDLE.append(address)


_IDLE: list[str] = []
"""Prepared databases of this process that no test uses."""

_TABLES = """
SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version'
"""
_END_OTHER_SESSIONS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


async def _prepared(server: str) -> str:
    name = f"socratic_test_{uuid4().hex[:16]}"
    await execute(at(server, MAINTENANCE), f"CREATE DATABASE {name} TEMPLATE template0")
    # No test ends this server: a commit need not wait until the disk has it.
    await execute(at(server, MAINTENANCE), f"ALTER DATABASE {name} SET synchronous_commit = off")
    ENDING.callback(lambda: asyncio.run(_drop(server, name)))
    store = SqlStore.from_url(at(server, name))
    await store.prepare()
    await store.close()
    return at(server, name)


async def _drop(server: str, database: str) -> None:
    await execute(at(server, MAINTENANCE), f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")


def at(server: str, database: str) -> str:
    """The address of a database on a server."""
    return urlsplit(server)._replace(path=f"/{database}").geturl()


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection past the store, as a person at a terminal would have it."""
    connection = await asyncpg.connect(url, timeout=ANSWER_SECONDS)
    try:
        yield connection
    finally:
        await connection.close(timeout=ANSWER_SECONDS)


async def execute(url: str, statement: str, *values: Any) -> list[asyncpg.Record]:
    """The rows a statement gives that is executed past the store."""
    async with connected(url) as connection:
        return await connection.fetch(statement, *values, timeout=PATIENCE)


async def read_only(url: str, *, is_read_only: bool) -> None:
    """Have a database take nothing any more, as a server that failed over; or take it again."""
    name = urlsplit(url).path.strip("/")
    statement = f"ALTER DATABASE {name} SET default_transaction_read_only = {is_read_only}"
    await execute(at(url, MAINTENANCE), statement)
    await execute(at(url, MAINTENANCE), _END_SESSIONS_OF, name)


_END_SESSIONS_OF = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1"


async def until_something_waits_for_a_lock(url: str) -> None:
    """Returns once a session in the database waits for a lock of another."""
    waiting = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'
    """
    async with asyncio.timeout(ANSWER_SECONDS), connected(url) as watcher:
        while not await watcher.fetchval(waiting):
            await watcher.execute("SELECT pg_sleep(0.01)")


_OPEN_TRANSACTIONS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start <= $1
"""


async def until_open_transactions_end(url: str) -> None:
    """Return once every transaction that is open in the database now has ended.

    The server finishes a commit that a killed client had sent, and cannot tell the client.
    """
    async with waiting_for("the end of open transactions"), connected(url) as watcher:
        now = await watcher.fetchval("SELECT clock_timestamp()")
        while await watcher.fetchval(_OPEN_TRANSACTIONS, now):
            await watcher.execute("SELECT pg_sleep(0.01)")


def _check(address: str) -> None:
    """Whether there is a server at `address` in which we may make databases."""
    rights = "SELECT rolsuper OR rolcreatedb AS may FROM pg_roles WHERE rolname = current_user"
    try:
        [role] = asyncio.run(execute(at(address, MAINTENANCE), rights))
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
        raise NotHere(str(error) or "no answer") from error
    if not role["may"]:
        raise NotHere("this user may not create databases")


def _private_process(started: ExitStack) -> str:
    """A server of our own in a temporary folder, gone without a trace afterwards."""
    folder = started.enter_context(tempfile.TemporaryDirectory(prefix="socratic-postgresql-"))
    server = PostgreSQLProcess(Path(folder))
    server.start()
    started.callback(server.kill)
    wait_for(server.url, _check)
    return server.url


SERVER = Server(
    "PostgreSQL server",
    [
        in_environment("SOCRATIC_TEST_POSTGRESQL_URL", _check),
        at_standard_port(
            "127.0.0.1:5432",
            [f"postgresql://{user}@127.0.0.1:5432" for user in ("postgres", getpass.getuser())],
            _check,
        ),
        in_docker(
            "postgres:17-alpine",
            5432,
            {"POSTGRES_HOST_AUTH_METHOD": "trust"},
            lambda host, port: f"postgresql://postgres@{host}:{port}",
            _check,
        ),
        Source("a private process", _private_process),
    ],
)
