"""A server or a database that refuses the store: the error says what to do."""

from __future__ import annotations

import asyncio
import re
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from urllib.parse import urlsplit
from uuid import uuid4

import asyncpg
import pytest

from socratic_bench.adapters.stores.sql.postgresql import engine as postgresql_engine
from socratic_bench.adapters.stores.sql.postgresql.address import parse
from socratic_bench.adapters.stores.sql.postgresql.errors import explain
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.errors import (
    StoreBroken,
    StoreError,
    StoreNotWritable,
    StoreRefused,
    StoreUnavailable,
)
from tests.contract.store.adapters import opened
from tests.contract.store.facts import a_response, a_run, a_score, record_unleased
from tests.servers import postgresql
from tests.servers.discovery import missing
from tests.servers.proxy import proxy

pytestmark = pytest.mark.connected

PASSWORD = "k33p-this"
UNREACHABLE = f"postgresql://user:{PASSWORD}@127.0.0.1:1/socratic"


@asynccontextmanager
async def _refusing(code: str, message: str) -> AsyncIterator[str]:
    """The address of a server that refuses all connections."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        startup = await reader.readexactly(int.from_bytes(await reader.readexactly(4)) - 4)
        if len(startup) == 4:  # a request for TLS; a start-up message has more to say
            writer.write(b"N")
            await reader.readexactly(int.from_bytes(await reader.readexactly(4)) - 4)
        fields = f"SFATAL\0VFATAL\0C{code}\0M{message}\0\0".encode()
        writer.write(b"E" + (len(fields) + 4).to_bytes(4) + fields)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield f"postgresql://user:{PASSWORD}@127.0.0.1:{port}/socratic"


async def _prepared(url: str) -> None:
    async with opened(lambda: SqlStore.from_url(url)):
        pass


@pytest.mark.parametrize(
    ("code", "message", "kind", "sentence"),
    [
        (
            "28P01",
            'password authentication failed for user "user"',
            StoreNotWritable,
            "refuses user and password",
        ),
        ("28000", 'no pg_hba.conf entry for host "…"', StoreBroken, "refuses user and password"),
        ("53300", "sorry, too many clients already", StoreUnavailable, "takes no more"),
        ("57P03", "the database system is starting up", StoreUnavailable, "starting up"),
    ],
)
async def test_a_server_that_refuses_a_connection_is_understood(
    code: str, message: str, kind: type[StoreError], sentence: str
) -> None:
    async with _refusing(code, message) as url:
        store = SqlStore.from_url(url)
        for ask in (store.prepare, store.revision):
            with pytest.raises(kind, match=rf"127\.0\.0\.1:\d+/socratic: .*{sentence}") as refused:
                await ask()
            assert message in str(refused.value)
            assert PASSWORD not in "".join(traceback.format_exception(refused.value))
        await store.close()


async def test_a_server_that_is_not_there_is_unavailable_and_named_without_password() -> None:
    store = SqlStore.from_url(UNREACHABLE)
    for ask in (store.prepare, store.revision):
        with pytest.raises(
            StoreUnavailable, match=r"127\.0\.0\.1:1/socratic: cannot connect"
        ) as error:
            await ask()
        assert PASSWORD not in "".join(traceback.format_exception(error.value))
    await store.close()


async def test_a_server_that_is_too_old_is_refused_with_its_version(url: str) -> None:
    server = urlsplit(url)
    async with proxy(server.hostname or "", server.port or 5432) as between:
        between.change = partial(re.compile(rb"(server_version\0)\d\d\.\d").sub, rb"\g<1>14.7")
        user, at, _ = server.netloc.rpartition("@")
        netloc = f"{user}{at}127.0.0.1:{between.port}"
        old = server._replace(netloc=netloc, query="sslmode=disable")
        store = SqlStore.from_url(old.geturl())
        for ask in (store.prepare, store.revision):
            with pytest.raises(StoreBroken, match=r"PostgreSQL 14\.7\d*, .* upgrade it to 15"):
                await ask()
        await store.close()


async def test_a_host_that_nobody_knows_is_unavailable() -> None:
    store = SqlStore.from_url("postgresql://postgres.invalid/socratic")
    with pytest.raises(StoreUnavailable, match=r"postgres\.invalid/socratic: cannot connect"):
        await store.prepare()
    await store.close()


async def test_a_database_that_may_only_be_read_says_so_and_is_read(url: str) -> None:
    await _prepared(url)
    name = urlsplit(url).path.removeprefix("/")
    await postgresql.execute(url, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    async with opened(lambda: SqlStore.from_url(url)) as store:
        with pytest.raises(StoreNotWritable, match="it is read-only"):
            await record_unleased(store, [a_response(a_run())])
        assert await store.cells() == []


@pytest.mark.long
async def test_an_address_that_asks_for_a_server_to_write_to_finds_it_to_read_as_well(
    url: str,
) -> None:
    writable = f"{url}?target_session_attrs=read-write"
    async with opened(lambda: SqlStore.from_url(writable)) as store:
        await store.prepare()
        assert await store.fold([a_score(a_run())], [])
        assert len(await store.cells()) == 1


@pytest.mark.long
async def test_of_several_hosts_one_that_is_silent_keeps_nobody_from_the_others(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql_engine, "CONNECT_SECONDS", 2.0)
    server = urlsplit(url)
    async with proxy(server.hostname or "", server.port or 0) as silent:
        silent.fall_silent()
        access, at, host = server.netloc.rpartition("@")
        hosts = f"{access}{at}127.0.0.1:{silent.port},{host}"
        several = server._replace(netloc=hosts, query="target_session_attrs=read-write").geturl()
        async with opened(lambda: SqlStore.from_url(several)) as store:
            assert await store.cells() == []


@pytest.mark.long
async def test_an_address_none_of_whose_servers_can_be_written_to_says_so(url: str) -> None:
    await _prepared(url)
    name = urlsplit(url).path.removeprefix("/")
    await postgresql.execute(url, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    store = SqlStore.from_url(f"{url}?target_session_attrs=read-write")
    for ask in (
        store.prepare,
        store.revision,
        lambda: record_unleased(store, [a_response(a_run())]),
    ):
        with pytest.raises(StoreNotWritable, match="no server in the address matches"):
            await ask()
    await store.close()


async def test_a_store_that_was_never_prepared_says_that_nothing_is_there(url: str) -> None:
    store = SqlStore.from_url(url)
    for ask in (store.experiments, store.revision, lambda: store.fold([a_score(a_run())], [])):
        with pytest.raises(StoreBroken, match="the store is empty"):
            await ask()
    await store.close()


async def test_a_database_that_is_not_there_is_missed_until_it_is_prepared() -> None:
    async with postgresql.new_database(exists=False) as url:
        store = SqlStore.from_url(url)
        with pytest.raises(StoreBroken, match="the database is missing"):
            await store.revision()
        await store.prepare()
        assert await store.cells() == []
        await store.close()


@pytest.fixture
async def powerless(url: str) -> AsyncIterator[str]:
    """The address of a database, with a user that has no rights in it."""
    name = f"socratic_test_{uuid4().hex[:16]}"
    try:
        await postgresql.execute(url, f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'")
    except asyncpg.InsufficientPrivilegeError:
        missing("no right to create users on the PostgreSQL server of the tests")
    await postgresql.execute(url, "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    host = urlsplit(url).netloc.rpartition("@")[2]
    yield urlsplit(url)._replace(netloc=f"{name}:{PASSWORD}@{host}").geturl()
    await postgresql.execute(url, f"DROP ROLE {name}")


@pytest.mark.long
async def test_who_may_not_create_the_database_is_told_how_to_have_it_created(
    powerless: str,
) -> None:
    store = SqlStore.from_url(postgresql.at(powerless, "socratic_never"))
    with pytest.raises(StoreBroken, match="`createdb socratic_never`") as refused:
        await store.prepare()
    assert PASSWORD not in "".join(traceback.format_exception(refused.value))
    await store.close()


@pytest.mark.long
async def test_who_may_not_create_tables_is_told_that_a_right_is_missing(powerless: str) -> None:
    store = SqlStore.from_url(powerless)
    with pytest.raises(StoreBroken, match=r"this user lacks a right.*permission denied for schema"):
        await store.prepare()
    await store.close()


@pytest.mark.long
async def test_a_database_in_another_encoding_is_refused_before_anything_is_lost() -> None:
    async with postgresql.new_database(exists=False) as url:
        name = urlsplit(url).path.removeprefix("/")
        await postgresql.execute(
            postgresql.at(url, postgresql.MAINTENANCE),
            f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'LATIN1' "
            "LC_COLLATE 'C' LC_CTYPE 'C'",
        )
        store = SqlStore.from_url(url)
        with pytest.raises(StoreBroken, match="its encoding is LATIN1"):
            await store.prepare()
        await store.close()


@pytest.mark.long
async def test_a_name_the_server_cannot_hold_is_refused_and_others_go_on(url: str) -> None:
    async with opened(lambda: SqlStore.from_url(url)) as store:
        unwritable = a_score(a_run(scenario="no\0good"))
        with pytest.raises(StoreRefused, match="invalid byte sequence"):
            await store.fold([unwritable, a_score(a_run())], [])
        assert await store.cells() == []
        assert len(await store.fold([a_score(a_run())], [])) == 1


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (asyncpg.DeadlockDetectedError, StoreUnavailable),
        (asyncpg.SerializationError, StoreUnavailable),
        (asyncpg.AdminShutdownError, StoreUnavailable),
        (asyncpg.CrashShutdownError, StoreUnavailable),
        (asyncpg.OutOfMemoryError, StoreUnavailable),
        (asyncpg.ConfigurationLimitExceededError, StoreUnavailable),
        (asyncpg.ReadOnlySQLTransactionError, StoreNotWritable),
        (asyncpg.InvalidPasswordError, StoreNotWritable),
        (asyncpg.DiskFullError, StoreNotWritable),
        (asyncpg.PostgresIOError, StoreNotWritable),
        (asyncpg.NumericValueOutOfRangeError, StoreRefused),
        (asyncpg.DataCorruptedError, StoreBroken),
        (asyncpg.DatabaseDroppedError, StoreBroken),
    ],
)
def test_what_tests_cannot_bring_about_is_told_apart_by_its_code(
    error: type[asyncpg.PostgresError], kind: type[StoreError]
) -> None:
    explained = explain(error("it happened"), "postgresql://host/db")
    assert type(explained) is kind
    assert "it happened" in str(explained)


async def test_connections_that_share_a_session_name_the_pooler(url: str) -> None:
    address = parse(url)
    first, second, pooled = [await asyncpg.connect(url) for _ in range(3)]
    try:
        await postgresql_engine._check_session(address, first, second)
        with pytest.raises(StoreBroken, match=r"pgbouncer.* pool_mode = session"):
            await postgresql_engine._check_session(address, pooled, pooled)
    finally:
        first.terminate()
