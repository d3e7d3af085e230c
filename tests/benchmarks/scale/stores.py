"""The stores that are compared, and the API over each, in a process of its own."""

from __future__ import annotations

import asyncio
import multiprocessing
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final
from unittest import mock
from urllib.parse import urlsplit

import asyncpg

from socratic_api.answers import ready_bytes
from socratic_api.bootstrap import build_app
from socratic_api.settings import ApiSettings
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.hosting.http.server import serving
from socratic_bench.hosting.process import quiet_garbage_collector, stop_signals
from tests.benchmarks.filled_stores import fill
from tests.benchmarks.scale.loading import loader_of
from tests.benchmarks.scale.plans import Size, experiments_of

_CHANGE: Final = """
INSERT INTO changes VALUES (0, 1) ON CONFLICT (shard) DO UPDATE SET changes = changes.changes + 1
"""


@dataclass(frozen=True, slots=True)
class FilledStore:
    """A store of a known size, and the address of the API over it."""

    url: str
    size: Size
    experiments: tuple[Experiment, ...]
    """Newest first."""

    address: str

    async def change(self) -> None:
        """Give the store another revision, so that the API makes its next answers anew."""
        if self.url.startswith("sqlite"):
            with closing(sqlite3.connect(_path_of(self.url), timeout=30)) as connection, connection:
                connection.execute(_CHANGE)
            return
        connection = await asyncpg.connect(urlsplit(self.url).geturl())
        try:
            await connection.execute(_CHANGE)
        finally:
            await connection.close()


@asynccontextmanager
async def served(url: str, size: Size) -> AsyncIterator[FilledStore]:
    """Fill the store at an address, unless it is filled, and serve the API over it."""
    experiments = tuple(experiments_of(size))
    store = SqlStore.from_url(url)
    await store.prepare()
    if not await store.progress_of([experiments[-1].experiment_id]):
        async with loader_of(url) as loader:
            await fill(store, loader, experiments)
    await store.close()
    async with _api(url) as address:
        yield FilledStore(url, size, experiments, address)


@asynccontextmanager
async def _api(url: str) -> AsyncIterator[str]:
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(url, sending), daemon=True)
    process.start()
    try:
        yield await asyncio.to_thread(receiving.recv)
    finally:
        process.terminate()
        process.join(10)


def _serve(url: str, ready: Connection) -> None:
    # An answer is waited for until it is made: a reader in haste would get the one before.
    with quiet_garbage_collector(), mock.patch.object(ready_bytes, "_STALE_AFTER", 60.0):
        asyncio.run(_serve_api(url, ready))


async def _serve_api(url: str, ready: Connection) -> None:
    store = SqlStore.from_url(url)
    await store.prepare()
    app = build_app(store, ApiSettings(freshness_ms=0))
    with stop_signals() as stop:
        async with serving(app, "127.0.0.1", 0, shutdown_timeout=1) as address:
            ready.send(address)
            await stop.wait()
    await store.close()


def _path_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))
