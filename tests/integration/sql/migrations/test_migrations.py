"""`prepare` makes the schema and upgrades it, once, however many processes call it."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from socratic_bench.adapters.stores.sql.database import backend_for
from socratic_bench.adapters.stores.sql.migrations import upgrade
from socratic_bench.adapters.stores.sql.migrations.upgrade import HEAD, OLDEST_READER
from socratic_bench.adapters.stores.sql.schema import METADATA
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.errors import StoreBroken
from tests.contract.store.facts import StoppedClock, a_run, a_score
from tests.integration.sql.migrations import first_version, second_version
from tests.integration.sql.migrations.comparing import COMPARED
from tests.integration.sql.processes import PREPARE, at_once


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "benchmark.db"


async def _prepare(path: Path) -> None:
    store = SqlStore.from_url(f"sqlite:///{path}")
    try:
        await store.prepare()
    finally:
        await store.close()


def _versions(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute("SELECT version_num FROM alembic_version")]


async def test_the_migrations_make_exactly_the_tables_of_the_schema(path: Path) -> None:
    await _prepare(path)
    engine = create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts=COMPARED)
        assert compare_metadata(context, METADATA) == []
    engine.dispose()


async def test_preparing_again_changes_nothing(path: Path) -> None:
    await _prepare(path)
    store = SqlStore.from_url(f"sqlite:///{path}")
    await store.prepare()
    [cell] = await store.fold([a_score(a_run())], [])
    await store.prepare()
    assert await store.cells() == [cell]
    await store.close()
    assert _versions(path) == [HEAD]


async def test_a_database_of_the_first_version_is_brought_up_to_date_with_all_it_holds(
    path: Path,
) -> None:
    await first_version.make(backend_for(f"sqlite:///{path}"))
    await _prepare(path)
    assert _versions(path) == [HEAD]
    store = SqlStore.from_url(f"sqlite:///{path}")
    await first_version.assert_it_goes_on(store)
    await store.close()


async def test_a_database_of_the_second_version_goes_on_beside_its_runners(path: Path) -> None:
    backend, clock = backend_for(f"sqlite:///{path}"), StoppedClock()
    await second_version.make(backend)
    await _prepare(path)
    store = SqlStore.from_url(f"sqlite:///{path}", clock)
    await second_version.assert_it_goes_on(store, backend, clock)
    await store.close()


async def test_a_relative_path_starts_at_the_working_folder_and_its_folders_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = SqlStore.from_url("sqlite:///results/week 10/100%.db")
    monkeypatch.chdir("/")
    await store.prepare()
    await store.close()
    assert _versions(tmp_path / "results" / "week 10" / "100%.db") == [HEAD]


def test_processes_that_open_a_new_file_at_the_same_time_all_succeed(path: Path) -> None:
    at_once(PREPARE, f"sqlite:///{path}", processes=2)
    assert _versions(path) == [HEAD]


async def test_many_stores_prepared_at_once_in_one_process_all_succeed(tmp_path: Path) -> None:
    await asyncio.gather(*(_prepare(tmp_path / f"{number % 2}.db") for number in range(6)))
    assert _versions(tmp_path / "0.db") == _versions(tmp_path / "1.db") == [HEAD]


async def test_a_schema_newer_than_this_version_is_refused_and_left_alone(path: Path) -> None:
    await _prepare(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.execute("DROP TABLE schema_readers")
        connection.commit()
    with pytest.raises(StoreBroken, match=r"benchmark\.db.*9999.*newer.*upgrade Socratic Bench"):
        await _prepare(path)
    assert _versions(path) == ["9999"]


@pytest.mark.parametrize("oldest", ["0001", HEAD])
async def test_a_newer_schema_that_lets_this_version_read_it_is_used_and_left_alone(
    path: Path, oldest: str
) -> None:
    await _prepare(path)
    _migrated_by_a_newer_version(path, oldest)
    await _prepare(path)
    assert _versions(path) == ["9999"]
    assert _oldest_reader(path) == oldest


async def test_a_newer_schema_that_asks_for_a_newer_reader_is_refused(path: Path) -> None:
    await _prepare(path)
    _migrated_by_a_newer_version(path, "9998")
    with pytest.raises(StoreBroken, match=r"benchmark\.db.*9999.*newer.*upgrade Socratic Bench"):
        await _prepare(path)


async def test_a_migrated_database_says_which_versions_may_read_it(path: Path) -> None:
    await _prepare(path)
    assert _oldest_reader(path) == OLDEST_READER


def _migrated_by_a_newer_version(path: Path, oldest: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.execute("UPDATE schema_readers SET oldest = ?", [oldest])
        connection.commit()


def _oldest_reader(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        [(oldest,)] = connection.execute("SELECT oldest FROM schema_readers")
    return str(oldest)


async def test_a_migration_that_fails_leaves_nothing_behind(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE cells (somebody_elses INTEGER)")
    with pytest.raises(Exception, match="cells"):
        await _prepare(path)
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        assert tables.fetchall() == [("cells",)]


def test_the_newest_migration_is_the_one_that_a_store_is_opened_with() -> None:
    scripts = ScriptDirectory(str(Path(upgrade.__file__).parent))
    assert scripts.get_current_head() == HEAD
