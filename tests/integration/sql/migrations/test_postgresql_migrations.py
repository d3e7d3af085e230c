"""Services that start together make one database with one schema, in any order."""

from __future__ import annotations

import asyncio
import threading

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection

from socratic_bench.adapters.stores.sql.database import backend_for
from socratic_bench.adapters.stores.sql.migrations.upgrade import HEAD
from socratic_bench.adapters.stores.sql.postgresql import engine as postgresql_engine
from socratic_bench.adapters.stores.sql.schema import METADATA
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.errors import StoreBroken, StoreError, StoreUnavailable
from tests.contract.store.adapters import opened
from tests.contract.store.facts import StoppedClock, a_run, a_score
from tests.integration.sql.migrations import first_version, second_version
from tests.integration.sql.migrations.comparing import COMPARED
from tests.integration.sql.processes import PREPARE, at_once
from tests.servers import postgresql
from tests.waiting import PATIENCE, waiting_for

pytestmark = pytest.mark.connected


async def _prepare(url: str) -> None:
    async with opened(lambda: SqlStore.from_url(url)):
        pass


async def _versions(url: str) -> list[str]:
    rows = await postgresql.execute(url, "SELECT version_num FROM alembic_version")
    return [row["version_num"] for row in rows]


async def test_the_migrations_make_exactly_the_tables_of_the_schema(url: str) -> None:
    await _prepare(url)

    differences: list[object] = []

    def compare(connection: Connection) -> None:
        context = MigrationContext.configure(connection, opts=COMPARED)
        differences.extend(compare_metadata(context, METADATA))

    await asyncio.to_thread(backend_for(url).migrate, compare)
    assert differences == []
    options = "SELECT relname, unnest(reloptions) FROM pg_class WHERE reloptions IS NOT NULL"
    assert {tuple(row) for row in await postgresql.execute(url, options)} >= {
        (table.name, f"{name}={value}")
        for table in METADATA.tables.values()
        for name, value in (table.dialect_options["postgresql"]["with"] or {}).items()
    }


async def test_a_database_of_the_first_version_is_brought_up_to_date_with_all_it_holds(
    url: str,
) -> None:
    await first_version.make(backend_for(url))
    async with opened(lambda: SqlStore.from_url(url)) as store:
        assert await _versions(url) == [HEAD]
        await first_version.assert_it_goes_on(store)


@pytest.mark.long
async def test_a_database_of_the_second_version_goes_on_beside_its_runners(url: str) -> None:
    backend, clock = backend_for(url), StoppedClock()
    await second_version.make(backend)
    async with opened(lambda: SqlStore.from_url(url, clock)) as store:
        assert await _versions(url) == [HEAD]
        await second_version.assert_it_goes_on(store, backend, clock)


@pytest.mark.long
async def test_services_that_start_at_once_make_one_database_with_one_schema() -> None:
    async with postgresql.new_database(exists=False) as url:
        await asyncio.to_thread(at_once, PREPARE, url, processes=3)
        assert await _versions(url) == [HEAD]
        store = SqlStore.from_url(url)
        assert len(await store.fold([a_score(a_run())], [])) == 1
        await store.close()


@pytest.mark.long
async def test_preparing_beside_a_service_at_work_waits_for_none_of_its_locks(url: str) -> None:
    async with opened(lambda: SqlStore.from_url(url)) as store, postgresql.connected(url) as other:
        [cell] = await store.fold([a_score(a_run())], [])
        async with other.transaction(), waiting_for("the migration beside locked rows"):
            await other.execute("SELECT * FROM cells, alembic_version FOR UPDATE")
            await _prepare(url)
        assert await store.cells() == [cell]


@pytest.mark.long
async def test_an_upgrade_beside_a_deletion_by_an_older_version_ends_in_no_deadlock(
    url: str,
) -> None:
    def make(connection: Connection) -> None:
        first_version.upgrade_to(connection, "0007")

    await asyncio.to_thread(backend_for(url).migrate, make)
    async with postgresql.connected(url) as deleting:
        async with deleting.transaction():
            await deleting.execute("UPDATE experiments SET revision = revision + 1")
            upgrade = asyncio.create_task(_prepare(url))
            await postgresql.until_something_waits_for_a_lock(url)
            await deleting.execute("DELETE FROM cells")
        await upgrade
    assert await _versions(url) == [HEAD]


@pytest.mark.long
async def test_changes_are_counted_without_a_search_path_as_in_a_restore(url: str) -> None:
    async with opened(lambda: SqlStore.from_url(url)) as store:
        await store.fold([a_score(a_run())], [])
        before = await store.revision()
        async with postgresql.connected(url) as restoring:
            await restoring.execute("SET search_path = ''")
            await restoring.execute("UPDATE public.cells SET record = record")
        assert await store.revision() != before


async def test_a_migration_that_takes_for_ever_elsewhere_is_not_waited_for_for_ever(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _prepare(url)
    begun, waited_for = threading.Event(), threading.Event()

    def take_long(_connection: Connection) -> None:
        begun.set()
        waited_for.wait(PATIENCE)

    elsewhere = asyncio.create_task(asyncio.to_thread(backend_for(url).migrate, take_long))
    await asyncio.to_thread(begun.wait, PATIENCE)
    monkeypatch.setattr(postgresql_engine, "LOCK_SECONDS", 0.1)
    with pytest.raises(StoreUnavailable, match="try again"):
        await _prepare(url)
    waited_for.set()
    await elsewhere
    monkeypatch.undo()
    await _prepare(url)


@pytest.mark.long
async def test_a_schema_newer_than_this_version_is_refused_and_left_alone(url: str) -> None:
    await _prepare(url)
    await postgresql.execute(url, "UPDATE alembic_version SET version_num = '9999'")
    await _prepare(url)  # whoever migrated it so far lets this version read it
    await postgresql.execute(url, "DROP TABLE schema_readers")
    with pytest.raises(StoreBroken, match=r"9999.*newer.*upgrade Socratic Bench"):
        await _prepare(url)
    assert await _versions(url) == ["9999"]


async def test_a_migration_that_fails_leaves_nothing_behind(url: str) -> None:
    await postgresql.execute(url, "CREATE SEQUENCE cells")
    with pytest.raises(StoreError, match='relation "cells" already exists'):
        await _prepare(url)
    tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    assert [row["tablename"] for row in await postgresql.execute(url, tables)] == []
