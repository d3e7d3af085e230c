"""A problem of a PostgreSQL database becomes one sentence, as one of our errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import asyncpg
import pytest
from sqlalchemy import text

from socratic_bench.adapters.stores.sql.postgresql import engine as postgresql_engine
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.errors import (
    StoreUnavailable,
)
from tests.contract.store.adapters import opened
from tests.contract.store.facts import a_conversation, a_response, a_run, a_score, record_unleased
from tests.servers import postgresql
from tests.servers.proxy import Proxy, proxy
from tests.waiting import waiting_for

pytestmark = pytest.mark.connected

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
async def _holding(url: str, lock: str) -> AsyncIterator[asyncpg.Connection]:
    """Another session that holds a lock in a transaction."""
    async with postgresql.connected(url) as other, other.transaction():
        await other.execute(lock)
        yield other


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


@pytest.mark.long
async def test_connections_that_died_while_nobody_used_them_are_replaced_unnoticed(
    url: str,
) -> None:
    async with opened(lambda: SqlStore.from_url(url)) as store:
        runs = [a_run(repeat) for repeat in range(1, 21)]
        await asyncio.gather(*(record_unleased(store, [a_response(run)]) for run in runs))
        await asyncio.gather(*(store.responses([run.run_id]) for run in runs))
        assert len(await postgresql.execute(url, TERMINATE_OTHERS)) > 2
        await asyncio.gather(*(record_unleased(store, [a_response(run)]) for run in runs))
        assert len(await store.responses([run.run_id for run in runs])) == 20


@pytest.mark.long
async def test_a_turn_is_read_though_the_server_lost_the_commit_of_an_earlier_one(
    url: str,
) -> None:
    """As after a fail-over to a standby that had not received it."""
    first, second, third, fourth = a_conversation(a_run(), turns=4)
    async with opened(lambda: SqlStore.from_url(url)) as store:
        await record_unleased(store, [first])
        await record_unleased(store, [second])
        await postgresql.execute(url, "DELETE FROM responses WHERE turn = 2")
        await postgresql.execute(url, TERMINATE_OTHERS)
        await record_unleased(store, [third])
        await record_unleased(store, [fourth])
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


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
async def test_a_statement_that_takes_too_long_is_ended(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql_engine, "STATEMENT_SECONDS", 0.1)
    async with opened(lambda: SqlStore.from_url(url)) as store:
        await store.fold([a_score(a_run())], [])
        async with _holding(url, "SELECT * FROM cells FOR UPDATE"):
            with pytest.raises(StoreUnavailable, match=r"took too long.*try again"):
                await store.fold([a_score(a_run(2))], [])


@pytest.mark.long
async def test_a_server_that_falls_silent_is_not_waited_for_for_ever(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("STATEMENT_SECONDS", "ANSWER_SECONDS", "CONNECT_SECONDS"):
        monkeypatch.setattr(postgresql_engine, name, 0.2)
    async with (
        waiting_for("a silent server to be given up"),
        _proxied(url) as (between, store),
    ):
        await record_unleased(store, [a_response(a_run())])
        between.fall_silent()
        for _ in range(2):  # once with a connection, once without
            with pytest.raises(StoreUnavailable, match="did not answer in time; try again"):
                await record_unleased(store, [a_response(a_run(2))])
        await between.stop()
        await between.start()
        await record_unleased(store, [a_response(a_run(2))])
        between.fall_silent()


@pytest.mark.long
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
