"""A problem of a PostgreSQL database becomes one sentence, as one of our errors."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit
from uuid import uuid4

import asyncpg
import pytest
from sqlalchemy import text

from socratic_bench.adapters.sql.postgresql import engine as postgresql_engine
from socratic_bench.adapters.sql.postgresql.errors import explain
from socratic_bench.adapters.sql.store import SqlStore
from socratic_bench.errors import (
    StoreBroken,
    StoreError,
    StoreNotWritable,
    StoreRefused,
    StoreUnavailable,
)
from tests.contract.store.adapters import opened
from tests.contract.store.facts import a_conversation, a_response, a_run, a_score
from tests.servers import postgresql
from tests.servers.discovery import missing
from tests.servers.proxy import Proxy, proxy
from tests.waiting import waiting_for

pytestmark = pytest.mark.connected

PASSWORD = "k33p-this"
UNREACHABLE = f"postgresql://user:{PASSWORD}@127.0.0.1:1/socratic"

TERMINATE_LOCKED = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'
"""
TERMINATE_OTHERS = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def _through(between: Proxy, url: str) -> str:
    """The address `url` as it is reached through a proxy."""
    parts = urlsplit(url)
    user = parts.netloc.rpartition("@")[0]
    return parts._replace(netloc=f"{user}@127.0.0.1:{between.port}").geturl()


@asynccontextmanager
async def _proxied(url: str) -> AsyncIterator[tuple[Proxy, SqlStore]]:
    """A store that is ready for use, and the proxy before its server."""
    parts = urlsplit(url)
    async with proxy(parts.hostname or "127.0.0.1", parts.port or 5432) as between:
        store = SqlStore.from_url(_through(between, url))
        await store.prepare()
        try:
            yield between, store
        finally:
            await store.close()


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


@asynccontextmanager
async def _holding(url: str, lock: str) -> AsyncIterator[asyncpg.Connection]:
    """Another session that holds a lock in a transaction."""
    async with postgresql.connected(url) as other, other.transaction():
        await other.execute(lock)
        yield other


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


async def test_a_host_that_nobody_knows_is_unavailable() -> None:
    store = SqlStore.from_url("postgresql://postgres.invalid/socratic")
    with pytest.raises(StoreUnavailable, match=r"postgres\.invalid/socratic: cannot connect"):
        await store.prepare()
    await store.close()


async def test_a_server_that_was_down_is_used_again_once_it_is_back(url: str) -> None:
    async with _proxied(url) as (between, store):
        await store.fold([a_score(a_run())], [])
        await store.revision()
        await between.stop()
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="cannot connect"):
                await store.fold([a_score(a_run(2))], [])
            with pytest.raises(StoreUnavailable, match="cannot connect"):
                await store.revision()
        await between.start()
        [cell] = await store.fold([a_score(a_run(2))], [])
        assert cell.responses == 2


async def test_connections_that_died_while_nobody_used_them_are_replaced_unnoticed(
    url: str,
) -> None:
    async with opened(lambda: SqlStore.from_url(url)) as store:
        runs = [a_run(repeat) for repeat in range(1, 21)]
        await asyncio.gather(*(store.record([a_response(run)]) for run in runs))
        await asyncio.gather(*(store.responses([run.run_id]) for run in runs))
        assert len(await postgresql.execute(url, TERMINATE_OTHERS)) > 2
        await asyncio.gather(*(store.record([a_response(run)]) for run in runs))
        assert len(await store.responses([run.run_id for run in runs])) == 20


async def test_a_turn_is_read_though_the_server_lost_the_commit_of_an_earlier_one(
    url: str,
) -> None:
    """As after a fail-over to a standby that had not received it."""
    first, second, third, fourth = a_conversation(a_run(), turns=4)
    async with opened(lambda: SqlStore.from_url(url)) as store:
        await store.record([first])
        await store.record([second])
        await postgresql.execute(url, "DELETE FROM responses WHERE turn = 2")
        await postgresql.execute(url, TERMINATE_OTHERS)
        await store.record([third])
        await store.record([fourth])
        run_id = first.run.run_id
        assert await store.responses([run_id]) == {run_id: [first, third, fourth]}


async def test_a_connection_killed_in_mid_work_is_a_fault_of_the_moment(url: str) -> None:
    async with opened(lambda: SqlStore.from_url(url)) as store:
        await store.fold([a_score(a_run())], [])
        async with _holding(url, "SELECT * FROM cells FOR UPDATE"):
            folding = asyncio.ensure_future(store.fold([a_score(a_run(2))], []))
            await postgresql.until_something_waits_for_a_lock(url)
            await postgresql.execute(url, TERMINATE_LOCKED)
            with pytest.raises(StoreUnavailable, match=r"connection was lost.*try again"):
                await folding
        [cell] = await store.fold([a_score(a_run(2))], [])
        assert cell.responses == 2


async def test_a_connection_that_breaks_while_it_is_set_up_is_a_fault_of_the_moment(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(lambda: SqlStore.from_url(url)) as store:
        with monkeypatch.context() as breaking:

            async def break_off(*_: object, **__: object) -> None:
                raise asyncpg.ConnectionDoesNotExistError("connection was closed")

            breaking.setattr(asyncpg.Connection, "set_type_codec", break_off)
            with pytest.raises(StoreUnavailable, match="connection was lost"):
                await store.revision()
        assert await store.revision()


async def test_a_connection_of_which_the_driver_has_lost_track_is_thrown_away(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a server's last words come in between the answers to a statement."""
    async with opened(lambda: SqlStore.from_url(url)) as store:
        [before] = await _processes_of(store)
        with monkeypatch.context() as breaking:

            async def lose_track(*_: object, **__: object) -> None:
                raise asyncpg.InternalClientError("cannot switch to state 11")

            breaking.setattr(asyncpg.Connection, "prepare", lose_track)
            with pytest.raises(StoreUnavailable, match=r"connection was lost.*state 11"):
                await store.revision()
        [after] = await _processes_of(store)
        assert before != after


async def _processes_of(store: SqlStore) -> list[int]:
    async with store._database.read() as transaction:
        return [row[0] for row in await transaction.execute(text("SELECT pg_backend_pid()"))]


async def test_a_lock_that_another_keeps_is_waited_for_only_so_long(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql_engine, "LOCK_SECONDS", 0.1)
    async with opened(lambda: SqlStore.from_url(url)) as store:
        await store.fold([a_score(a_run())], [])
        async with _holding(url, "SELECT * FROM cells FOR UPDATE"):
            with pytest.raises(StoreUnavailable, match="kept its lock for too long; try again"):
                await store.fold([a_score(a_run(2))], [])
            assert len(await store.cells()) == 1
        assert await store.fold([a_score(a_run(2))], [])


async def test_a_statement_that_takes_too_long_is_ended(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql_engine, "STATEMENT_SECONDS", 0.1)
    async with opened(lambda: SqlStore.from_url(url)) as store:
        await store.fold([a_score(a_run())], [])
        async with _holding(url, "SELECT * FROM cells FOR UPDATE"):
            with pytest.raises(StoreUnavailable, match=r"took too long.*try again"):
                await store.fold([a_score(a_run(2))], [])


async def test_a_server_that_falls_silent_is_not_waited_for_for_ever(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("STATEMENT_SECONDS", "ANSWER_SECONDS", "CONNECT_SECONDS"):
        monkeypatch.setattr(postgresql_engine, name, 0.2)
    async with (
        waiting_for("a silent server to be given up"),
        _proxied(url) as (between, store),
    ):
        await store.record([a_response(a_run())])
        between.fall_silent()
        for _ in range(2):  # once with a connection, once without
            with pytest.raises(StoreUnavailable, match="did not answer in time; try again"):
                await store.record([a_response(a_run(2))])
        await between.stop()
        await between.start()
        await store.record([a_response(a_run(2))])
        between.fall_silent()


async def test_a_transaction_that_stands_still_is_ended_and_lets_go_of_its_locks(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(lambda: SqlStore.from_url(url)) as store:
        await store.fold([a_score(a_run())], [])
        keys = [cell.key for cell in await store.cells()]

    async def stand_still(store: SqlStore) -> None:
        async with store._database.write() as transaction:
            parameters = store._statements.aggregates.keys_of_cells(keys)
            assert await transaction.execute(store._statements.aggregates.take_cells, parameters)
            # Waits for that lock, which the server takes from whoever stands still.
            await postgresql.execute(url, "SELECT * FROM cells FOR UPDATE")
            await transaction.execute(store._statements.aggregates.cells, {"experiment_ids": []})

    monkeypatch.setattr(postgresql_engine, "IDLE_SECONDS", 0.2)
    impatient = SqlStore.from_url(url)
    with pytest.raises(StoreUnavailable, match="try again"):
        await stand_still(impatient)
    await impatient.close()
    monkeypatch.undo()
    async with opened(lambda: SqlStore.from_url(url)) as store:
        assert await store.fold([a_score(a_run(2))], [])


async def test_a_database_that_may_only_be_read_says_so_and_is_read(url: str) -> None:
    await _prepared(url)
    name = urlsplit(url).path.removeprefix("/")
    await postgresql.execute(url, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    async with opened(lambda: SqlStore.from_url(url)) as store:
        with pytest.raises(StoreNotWritable, match="it is read-only"):
            await store.record([a_response(a_run())])
        assert await store.cells() == []


async def test_an_address_that_asks_for_a_server_to_write_to_finds_it_to_read_as_well(
    url: str,
) -> None:
    writable = f"{url}?target_session_attrs=read-write"
    async with opened(lambda: SqlStore.from_url(writable)) as store:
        await store.prepare()
        assert await store.fold([a_score(a_run())], [])
        assert len(await store.cells()) == 1


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


async def test_an_address_none_of_whose_servers_can_be_written_to_says_so(url: str) -> None:
    await _prepared(url)
    name = urlsplit(url).path.removeprefix("/")
    await postgresql.execute(url, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    store = SqlStore.from_url(f"{url}?target_session_attrs=read-write")
    for ask in (store.prepare, store.revision, lambda: store.record([a_response(a_run())])):
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
    """The address of a database as somebody reaches it who has no rights in it."""
    name = f"socratic_test_{uuid4().hex[:16]}"
    try:
        await postgresql.execute(url, f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'")
    except asyncpg.InsufficientPrivilegeError:
        missing("no right to create users on the PostgreSQL server of the tests")
    await postgresql.execute(url, "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    host = urlsplit(url).netloc.rpartition("@")[2]
    yield urlsplit(url)._replace(netloc=f"{name}:{PASSWORD}@{host}").geturl()
    await postgresql.execute(url, f"DROP ROLE {name}")


async def test_who_may_not_create_the_database_is_told_how_to_have_it_created(
    powerless: str,
) -> None:
    store = SqlStore.from_url(postgresql.at(powerless, "socratic_never"))
    with pytest.raises(StoreBroken, match="`createdb socratic_never`") as refused:
        await store.prepare()
    assert PASSWORD not in "".join(traceback.format_exception(refused.value))
    await store.close()


async def test_who_may_not_create_tables_is_told_that_a_right_is_missing(powerless: str) -> None:
    store = SqlStore.from_url(powerless)
    with pytest.raises(StoreBroken, match=r"this user lacks a right.*permission denied for schema"):
        await store.prepare()
    await store.close()


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
