"""SQLite stores durably, admits readers during a write, and leaves no files behind."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from sqlalchemy import text

from socratic_bench.adapters.stores.sql import database
from socratic_bench.adapters.stores.sql.sqlite import engine as sqlite_engine
from socratic_bench.adapters.stores.sql.store import SqlStore
from tests.contract.store.adapters import opened
from tests.contract.store.facts import a_response, a_run, record_unleased
from tests.waiting import PATIENCE

READ_AND_LEAVE = """
import asyncio, sys
from socratic_bench.adapters.stores.sql.store import SqlStore

async def main():
    store = SqlStore.from_url(sys.argv[1])
    await store.prepare()
    await store.revision()

asyncio.run(main())
"""


async def _pragma(path: Path, name: str) -> object:
    engine = sqlite_engine.writing_engine(path)
    session = engine.session()
    [(value,)] = await session.execute(text(f"PRAGMA {name}"), None)
    await session.close()
    await engine.dispose()
    return value


async def test_a_commit_is_on_the_disk_before_anybody_hears_of_it(tmp_path: Path) -> None:
    path = tmp_path / "benchmark.db"
    store = SqlStore.from_url(f"sqlite:///{path}")
    await store.prepare()
    await store.close()
    assert await _pragma(path, "journal_mode") == "wal"
    assert await _pragma(path, "synchronous") == 2  # FULL
    assert await _pragma(path, "busy_timeout") == 30_000


async def test_closing_ends_every_thread_of_the_store(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    store = SqlStore.from_url(f"sqlite:///{tmp_path}/benchmark.db")
    await store.prepare()
    await record_unleased(store, [a_response(a_run())])
    await store.revision()
    started = [
        thread
        for thread in set(threading.enumerate()) - before
        if not thread.name.startswith("asyncio_")  # the loop's own, which it keeps
    ]
    assert started
    await store.close()
    for thread in started:
        thread.join(timeout=10)
    assert [thread for thread in started if thread.is_alive()] == []


def test_a_store_that_nobody_closed_does_not_keep_the_process_alive(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/benchmark.db"
    subprocess.run([sys.executable, "-c", READ_AND_LEAVE, url], check=True, timeout=PATIENCE)


async def test_a_transaction_that_outlasts_the_closing_of_the_store_ends_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "WAIT_SECONDS", 0.05)
    path = f"sqlite:///{tmp_path}/benchmark.db"
    async with opened(lambda: SqlStore.from_url(path)) as other:
        store = SqlStore.from_url(path)
        async with store._database.write() as transaction:
            await transaction.execute(text("DELETE FROM cells"))
            await store.close()
            await transaction.execute(text("DELETE FROM scores"))
        await record_unleased(other, [a_response(a_run())])  # the lock is free again
