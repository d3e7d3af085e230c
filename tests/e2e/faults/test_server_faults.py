"""Servers that accept nothing, move or lose everything under services; they heal by themselves."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from socratic_bench.addresses import open_store
from tests.e2e.command import Terminal
from tests.e2e.faults.undisturbed import IN_HAND, UnderWay, under_way
from tests.servers import postgresql, rabbitmq
from tests.servers.discovery import NotHere, missing, wait_for
from tests.servers.postgresql_process import PostgreSQLProcess
from tests.small_disk import SmallDisk, small_disk
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.connected

READ_ONLY_SECONDS = float(os.environ.get("SOCRATIC_TEST_READ_ONLY_SECONDS", "0"))
"""For how much longer than it takes to notice a database is read-only."""

HASTY = {
    "SOCRATIC_RUNNER_FIRST_DELAY": "0.01",
    "SOCRATIC_RUNNER_BUSY_DELAY": "0.2",
    "SOCRATIC_CURATOR_QUIET": "3",
}
BE_SYNCHRONOUS = "ALTER SYSTEM SET synchronous_standby_names = '*'"
SYNC_STANDBYS = "SELECT FROM pg_stat_replication WHERE sync_state = 'sync'"
DATABASE_ON_SMALL_DISK = "CREATE DATABASE benchmark TEMPLATE template0 TABLESPACE small"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that a server may use, which is not the test's user; a test's own it may not."""
    with TemporaryDirectory(prefix="socratic-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def disk(folder) -> Iterator[SmallDisk]:
    place = folder / "disk"
    place.mkdir()
    with small_disk(place, megabytes=16) as disk:
        yield disk


@asynccontextmanager
async def own_postgresql(folder: Path, **options: str) -> AsyncIterator[PostgreSQLProcess]:
    """A server that the test may break."""

    def start() -> PostgreSQLProcess:
        folder.mkdir()
        server = PostgreSQLProcess(folder, **options)
        server.start()
        return server

    try:
        server = await asyncio.to_thread(start)
    except NotHere as error:
        missing(str(error))
    try:
        yield server
    finally:
        with suppress(NotHere):  # the test may have killed it
            await asyncio.to_thread(server.kill)


@asynccontextmanager
async def sqlite_on(disk: SmallDisk, _: Path) -> AsyncIterator[str]:
    yield f"sqlite:///{disk.folder}/benchmark.db"


@asynccontextmanager
async def postgresql_on(disk: SmallDisk, folder: Path) -> AsyncIterator[str]:
    """A database whose tables are on the disk; the server's own files are elsewhere."""
    async with own_postgresql(folder / "postgresql") as server:
        server.give(disk.folder)
        maintenance = postgresql.at(server.url, postgresql.MAINTENANCE)
        await postgresql.execute(maintenance, f"CREATE TABLESPACE small LOCATION '{disk.folder}'")
        await postgresql.execute(maintenance, DATABASE_ON_SMALL_DISK)
        yield postgresql.at(server.url, "benchmark")


@asynccontextmanager
async def benchmark_on(
    folder: Path, broker: str, address: str, **settings: str
) -> AsyncIterator[UnderWay]:
    """A benchmark in the middle of its work, on this broker and this store."""
    addresses = {"SOCRATIC_BROKER_URL": broker, "SOCRATIC_STORE_URL": address}
    environment = {**addresses, **HASTY, **settings}
    store = open_store(address)
    try:
        async with under_way(Terminal(folder, environment), environment, store) as benchmark:
            yield benchmark
    finally:
        await store.close()


@pytest.mark.parametrize("database", [sqlite_on, postgresql_on])
@pytest.mark.long
async def test_a_disk_that_fills_up_and_gets_room_again_costs_nothing(
    tmp_path, folder, disk, database
):
    async with (
        rabbitmq.namespace() as broker,
        database(disk, folder) as address,
        benchmark_on(tmp_path, broker, address) as benchmark,
    ):
        disk.fill()
        await benchmark.model.release()
        assert "disk is full" in await benchmark.told_loudly()
        disk.make_room()
        await benchmark.ends_as_a_quiet_run()


@pytest.mark.timeout(PATIENCE + READ_ONLY_SECONDS + PATIENCE)
async def test_a_database_that_is_read_only_for_a_while_costs_nothing(tmp_path, addresses):
    broker, address = addresses["SOCRATIC_BROKER_URL"], addresses["SOCRATIC_STORE_URL"]
    async with benchmark_on(tmp_path, broker, address) as benchmark:
        await postgresql.read_only(address, is_read_only=True)
        try:
            await benchmark.model.release()
            assert "read-only" in await benchmark.told_loudly()
            await asyncio.sleep(READ_ONLY_SECONDS)  # what is tried is that time passes
            # As many again may have been leased before: leases are taken a little ahead.
            assert len(benchmark.model.asked) <= 1 + 2 * IN_HAND
        finally:
            await postgresql.read_only(address, is_read_only=False)
        await benchmark.ends_as_a_quiet_run()


@asynccontextmanager
async def primary_and_standby(
    folder: Path,
) -> AsyncIterator[tuple[PostgreSQLProcess, PostgreSQLProcess]]:
    """Two servers; the second has all that the first confirms."""
    async with own_postgresql(folder / "primary") as primary:
        maintenance = postgresql.at(primary.url, postgresql.MAINTENANCE)
        async with own_postgresql(folder / "standby", standby_of=primary.url) as standby:
            await postgresql.execute(maintenance, BE_SYNCHRONOUS)
            await postgresql.execute(maintenance, "SELECT pg_reload_conf()")
            await until(
                lambda: postgresql.execute(maintenance, SYNC_STANDBYS),
                bool,
                "a synchronous standby",
            )
            yield primary, standby


@pytest.mark.long
async def test_a_database_that_fails_over_costs_nothing(tmp_path, folder):
    async with (
        rabbitmq.namespace() as broker,
        primary_and_standby(folder) as (primary, standby),
    ):
        hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
        address = f"postgresql://postgres@{hosts}/benchmark?target_session_attrs=read-write"
        async with benchmark_on(tmp_path, broker, address) as benchmark:
            runner = benchmark.services["runner"]
            await asyncio.to_thread(primary.kill)
            await benchmark.model.release()
            await runner.logged("waiting for the store")
            await runner.until_ready_is(503)
            await asyncio.to_thread(standby.promote)
            await benchmark.ends_as_a_quiet_run()


@pytest.mark.long
async def test_a_broker_that_loses_all_it_kept_costs_nothing(tmp_path, addresses, own_rabbitmq):
    address = addresses["SOCRATIC_STORE_URL"]
    few_in_hand = {"SOCRATIC_RUNNER_IN_FLIGHT_PER_MODEL": "10"}
    async with benchmark_on(tmp_path, own_rabbitmq.url, address, **few_in_hand) as benchmark:
        await asyncio.to_thread(own_rabbitmq.discard)
        await benchmark.model.release()
        await benchmark.services["runner"].until_ready_is(503)
        own_rabbitmq.start()
        await asyncio.to_thread(wait_for, own_rabbitmq.url, rabbitmq.check)
        await benchmark.ends_as_a_quiet_run()
        reconciled = benchmark.services["curator"].metric("socratic_reconciled_total", what="runs")
        assert await reconciled > 0
