"""Commands that only read leave a store as it is, and need no right to write."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import asyncpg
import pytest

from socratic_bench.adapters.stores.sql.database import backend_for
from socratic_bench.adapters.stores.sql.migrations.upgrade import OLDEST_READABLE
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.errors import StoreBroken
from tests.contract.store.facts import a_score
from tests.dashboard.seeding import experiment, seed, tutors
from tests.e2e.command import Terminal
from tests.integration.sql.migrations.first_version import upgrade_to
from tests.servers import postgresql
from tests.servers.discovery import missing
from tests.small_disk import SmallDisk, small_disk

READING = (["status"], ["leaderboard"], ["verify"])
PASSWORD = "reads-only"


async def _seed(url: str) -> str:
    store = SqlStore.from_url(url)
    await store.prepare()
    planned = experiment(tutors(2))
    await seed(store, planned)
    await store.close()
    return planned.experiment_id


def _assert_commands_read(terminal: Terminal, experiment_id: str) -> None:
    for words in (*READING, ["status", experiment_id], ["watch", experiment_id]):
        done = terminal.run(*words)
        assert done.returncode == 0, done.stderr
        assert "Error" not in done.stderr


def _as_of(path: Path, revision: str) -> None:
    """Turn a database into one of an older version: remove the tables that only writers need."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE pauses")
        connection.execute("DROP TABLE changes")
        connection.execute("UPDATE alembic_version SET version_num = ?", [revision])
        connection.commit()


async def test_a_store_of_an_older_version_is_read_and_not_changed(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    experiment_id = await _seed(terminal.store)
    _as_of(terminal.database, OLDEST_READABLE)
    before = terminal.database.read_bytes()
    _assert_commands_read(terminal, experiment_id)
    assert terminal.database.read_bytes() == before


def _made_by(url: str, revision: str) -> None:
    """Make a database of this older version."""
    backend = backend_for(url)
    backend.create()
    backend.migrate(lambda connection: upgrade_to(connection, revision))


async def test_a_store_too_old_to_be_read_is_left_alone_and_the_command_that_upgrades_it_named(
    tmp_path: Path,
) -> None:
    terminal = Terminal(tmp_path)
    _made_by(terminal.store, "0005")
    before = terminal.database.read_bytes()
    for words in (*READING, ["watch", "exp"], ["serve", "--port", "0"]):
        done = terminal.run(*words)
        assert done.returncode == 1
        assert "its schema (0005) is older" in done.stderr
        assert "`socratic-bench run CONFIG`" in done.stderr
    assert terminal.database.read_bytes() == before


async def test_a_store_of_the_first_version_is_too_old_to_be_read(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/benchmark.db"
    _made_by(url, "0001")
    store = SqlStore.from_url(url)
    with pytest.raises(StoreBroken, match=r"its schema \(0001\) is older"):
        await store.check_readable()
    await store.close()


@pytest.mark.parametrize(("oldest", "is_read"), [("0002", True), ("9998", False), (None, False)])
async def test_a_store_of_a_newer_version_is_read_where_that_version_lets_it(
    tmp_path: Path, oldest: str | None, is_read: bool
) -> None:
    url = f"sqlite:///{tmp_path}/benchmark.db"
    await _seed(url)
    with closing(sqlite3.connect(tmp_path / "benchmark.db")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        if oldest is None:
            connection.execute("DROP TABLE schema_readers")
        else:
            connection.execute("UPDATE schema_readers SET oldest = ?", [oldest])
        connection.commit()
    store = SqlStore.from_url(url)
    if is_read:
        await store.check_readable()
        assert await store.cells()
    else:
        with pytest.raises(StoreBroken, match=r"9999.*newer.*upgrade Socratic Bench"):
            await store.check_readable()
    await store.close()


async def test_reading_makes_no_file(tmp_path: Path) -> None:
    file = tmp_path / "benchmark.db"
    store = SqlStore.from_url(f"sqlite:///{tmp_path}/benchmark.db")
    with pytest.raises(StoreBroken):
        await store.check_readable()
    await store.close()
    assert not await asyncio.to_thread(file.exists)


@pytest.mark.parametrize("revision", [None, "0c9f1d3a", "0009"], ids=["none", "alembic", "ours"])
async def test_a_database_of_another_program_stays_as_it_is(
    tmp_path: Path, revision: str | None
) -> None:
    file = tmp_path / "places.db"
    with closing(sqlite3.connect(file)) as theirs:
        theirs.execute("CREATE TABLE experiments (name TEXT)")
        if revision:
            theirs.execute("CREATE TABLE alembic_version (version_num TEXT)")
            theirs.execute("INSERT INTO alembic_version VALUES (?)", [revision])
            theirs.commit()
    store = SqlStore.from_url(f"sqlite:///{file}")
    try:
        for ask in (store.prepare, store.check_readable):
            with pytest.raises(StoreBroken, match=r"belongs to another program \(tables exp"):
                await ask()
    finally:
        await store.close()
    with closing(sqlite3.connect(file)) as theirs:
        tables = theirs.execute("SELECT name FROM sqlite_master").fetchall()
    assert ("responses",) not in tables


async def test_a_file_in_which_nothing_was_stored_is_said_to_be_empty(tmp_path: Path) -> None:
    (tmp_path / "benchmark.db").touch()
    store = SqlStore.from_url(f"sqlite:///{tmp_path}/benchmark.db")
    with pytest.raises(StoreBroken, match="the store is empty"):
        await store.check_readable()
    await store.close()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path, megabytes=5) as disk:
        yield disk


async def test_a_file_on_a_disk_that_takes_nothing_is_read(disk: SmallDisk) -> None:
    terminal = Terminal(disk.folder)
    experiment_id = await _seed(terminal.store)
    disk.make_read_only()
    _assert_commands_read(terminal, experiment_id)


async def test_a_reader_in_a_folder_that_takes_no_file_sees_what_others_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/benchmark.db"
    writer = SqlStore.from_url(url)
    await writer.prepare()
    await writer.close()
    monkeypatch.setattr(
        "socratic_bench.adapters.stores.sql.sqlite.engine._is_in_read_only_folder", lambda _: True
    )
    reader = SqlStore.from_url(url)
    assert await reader.cells() == []
    writer = SqlStore.from_url(url)
    planned = experiment(tutors(1))
    await writer.register(planned)
    await writer.fold([a_score(next(iter(planned.runs())))], [])
    assert len(await reader.cells()) == 1
    await writer.close()
    assert len(await reader.cells()) == 1
    await reader.close()


@pytest.fixture
async def reader() -> AsyncIterator[tuple[str, str]]:
    """The address of a database as a role reaches it that may only read, and its experiment."""
    name = f"socratic_test_{uuid4().hex[:16]}"
    async with postgresql.new_database() as url:
        experiment_id = await _seed(url)
        try:
            await postgresql.execute(url, f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'")
        except asyncpg.InsufficientPrivilegeError:
            missing("no right to create users on the PostgreSQL server of the tests")
        await postgresql.execute(url, "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        await postgresql.execute(url, f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}")
        host = urlsplit(url).netloc.rpartition("@")[2]
        yield urlsplit(url)._replace(netloc=f"{name}:{PASSWORD}@{host}").geturl(), experiment_id
        await postgresql.execute(url, f"DROP OWNED BY {name}")
        await postgresql.execute(url, f"DROP ROLE {name}")


@pytest.mark.long
@pytest.mark.connected
async def test_a_role_that_may_only_read_is_enough(reader: tuple[str, str], tmp_path: Path) -> None:
    url, experiment_id = reader
    _assert_commands_read(Terminal(tmp_path, {"SOCRATIC_STORE_URL": url}), experiment_id)
