"""A problem of a database becomes one sentence that names it, as one of our errors."""

from __future__ import annotations

import asyncio
import errno
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from socratic_bench.adapters.stores.sql.sqlite import engine as sqlite_engine
from socratic_bench.adapters.stores.sql.sqlite.backend import explain
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.response import Response
from socratic_bench.errors import StoreBroken, StoreError, StoreNotWritable, StoreUnavailable
from tests.contract.store.facts import a_response, a_run, a_score, record_unleased
from tests.small_disk import SmallDisk, small_disk
from tests.waiting import PATIENCE

REPOSITORY = Path(__file__).parents[4]

WRITE_UP_TO_A_LIMIT = """
import asyncio, resource, sys
from tests.contract.store.facts import a_response, a_run
from socratic_bench.ports.stores.responses import NO_LEASE
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.errors import StoreNotWritable

async def main():
    store = SqlStore.from_url(sys.argv[1])
    await store.prepare()
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_000_000, resource.RLIM_INFINITY))
    stored = []
    for repeat in range(1, 10_000):
        response = a_response(a_run(repeat), "x" * 100_000)
        try:
            await store.record([response], [NO_LEASE])
        except StoreNotWritable as error:
            print(error)
            break
        stored.append(response)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    await store.record([response], [NO_LEASE])
    for kept in [*stored, response]:
        assert await store.responses([kept.run.run_id]) == {kept.run.run_id: [kept]}
    print("kept", len(stored))
    await store.close()

asyncio.run(main())
"""


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path, megabytes=3) as disk:
        yield disk


async def _use(url: str) -> None:
    store = SqlStore.from_url(url)
    try:
        await store.prepare()
        await record_unleased(store, [a_response(a_run())])
    finally:
        await store.close()


async def test_a_folder_is_no_database(tmp_path: Path) -> None:
    with pytest.raises(StoreBroken, match=f"{tmp_path}: this is a folder"):
        await _use(f"sqlite:///{tmp_path}")


async def test_a_file_in_the_way_of_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("notes")
    with pytest.raises(StoreBroken, match=r"benchmark\.db.*results"):
        await _use(f"sqlite:///{tmp_path}/results/benchmark.db")


async def test_a_file_of_another_kind_is_no_database_and_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    notes = "These are notes of ours, and no database. " * 40
    path.write_text(notes)
    with pytest.raises(StoreBroken, match=f"{path}: this is not an SQLite database"):
        await _use(f"sqlite:///{path}")
    assert path.read_text() == notes


async def test_a_store_that_was_never_prepared_says_that_nothing_is_there(tmp_path: Path) -> None:
    store = SqlStore.from_url(f"sqlite:///{tmp_path}/benchmark.db")
    for ask in (store.experiments, store.revision, lambda: store.fold([a_score(a_run())], [])):
        with pytest.raises(StoreBroken, match="the store is empty"):
            await ask()
    await store.close()


async def test_a_disk_that_may_not_be_written_says_so(tiny_disk: SmallDisk) -> None:
    path = tiny_disk.folder / "benchmark.db"
    await _use(f"sqlite:///{path}")
    await asyncio.to_thread(tiny_disk.make_read_only)
    with pytest.raises(StoreBroken, match=f"{path}: .*is writable|{path}: .*permissions"):
        await _use(f"sqlite:///{path}")


def _read_only(path: Path) -> sqlite3.Error:
    """SQLite's error for a write to a read-only file."""
    with (
        closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection,
        pytest.raises(sqlite3.OperationalError) as refused,
    ):
        connection.execute("DELETE FROM cells")
    return refused.value


async def test_a_database_that_may_not_be_written_for_now_may_be_so_later(tmp_path: Path) -> None:
    path = tmp_path / "benchmark.db"
    await _use(f"sqlite:///{path}")
    explained = explain(_read_only(path), path)
    assert type(explained) is StoreNotWritable
    assert "it is read-only; check its permissions" in str(explained)


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, StoreNotWritable),
        (errno.EROFS, StoreNotWritable),
        (errno.EIO, StoreNotWritable),
        (errno.EACCES, StoreBroken),
        (errno.ENOTDIR, StoreBroken),
    ],
)
def test_what_the_operating_system_says_of_a_disk_may_pass_and_of_a_path_does_not(
    number: int, kind: type[StoreError]
) -> None:
    error = OSError(number, "it happened", "/results")
    explained = explain(error, Path("/results/benchmark.db"))
    assert type(explained) is kind
    assert "it happened (/results)" in str(explained)


async def test_a_database_that_others_keep_locked_is_unavailable_for_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "benchmark.db"
    await _use(f"sqlite:///{path}")
    monkeypatch.setattr(sqlite_engine, "LOCK_TIMEOUT_SECONDS", 0.1)
    store = SqlStore.from_url(f"sqlite:///{path}")
    response = a_response(a_run(2))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match=f"{path}: another process.*try again"):
            await record_unleased(store, [response])
        assert len(await store.responses([a_run().run_id])) == 1
    assert await record_unleased(store, [response]) == [response]
    await store.close()


async def test_a_full_disk_is_said_to_be_full_and_loses_nothing(tiny_disk: SmallDisk) -> None:
    path = tiny_disk.folder / "benchmark.db"
    store = SqlStore.from_url(f"sqlite:///{path}")
    await store.prepare()
    responses = [a_response(a_run(repeat), "x" * 100_000) for repeat in range(1, 100)]
    stored: list[Response] = []

    async def record_all() -> None:
        for response in responses:
            stored.extend(await record_unleased(store, [response]))

    with pytest.raises(StoreNotWritable, match=f"{path}: the disk is full.*free some space"):
        await record_all()
    assert stored == responses[: len(stored)]
    kept = await store.responses([response.run.run_id for response in responses])
    assert kept == {response.run.run_id: [response] for response in stored}
    await store.close()


def test_after_a_write_that_failed_the_store_goes_on_with_nothing_lost(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/benchmark.db"
    result = subprocess.run(
        [sys.executable, "-c", WRITE_UP_TO_A_LIMIT, url],
        cwd=REPOSITORY,
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert result.returncode == 0, result.stderr
    sentence, kept = result.stdout.splitlines()
    assert "benchmark.db: reading or writing it failed" in sentence
    assert "Everything stored before is safe" in sentence
    assert int(kept.removeprefix("kept ")) > 0


@pytest.mark.parametrize(
    ("mode", "kind", "warned"),
    [
        ("wal", "ext4", False),
        ("delete", "ext4", True),
        ("wal", "nfs4", True),
        ("wal", "cifs", True),
    ],
)
def test_a_file_that_is_not_on_a_local_disk_is_warned_of(
    tmp_path: Path, mode: str, kind: str, warned: bool
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"disk / ext4 rw 0 0\nserver:/x {tmp_path} {kind} rw 0 0\n")
    with capture_logs() as logs:
        sqlite_engine._warn_of_network(tmp_path / "benchmark.db", mode, mounts)
    assert [each["file_system"] for each in logs] == [kind] * warned


async def test_a_file_without_its_log_holds_all_but_the_last_answers(tmp_path: Path) -> None:
    file, copy = tmp_path / "benchmark.db", tmp_path / "copy.db"
    store = SqlStore.from_url(f"sqlite:///{file}")
    try:
        await store.prepare()
        for repeat in range(1, 31):
            await record_unleased(store, [a_response(a_run(repeat), "Why? " * 1_000)])
        await asyncio.to_thread(shutil.copy, file, copy)
    finally:
        await store.close()
    with closing(sqlite3.connect(copy)) as copied:
        [(stored,)] = copied.execute("SELECT COUNT(*) FROM responses")
    assert stored >= 20
