"""Every endpoint, fuzzed by schemathesis: no failure of the service, and answers as described."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from socratic_bench.adapters.brokers.memory.broker import MemoryBroker
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from tests.dashboard.conftest import serving
from tests.dashboard.seeding import experiment, seed, tutors
from tests.servers.discovery import missing

ROOT = Path(__file__).parents[4]
PROGRAM = ROOT / ".venv-servers" / "bin" / "st"
CHECKS = (
    "not_a_server_error",
    "response_schema_conformance",
    "content_type_conformance",
    "status_code_conformance",
)
DEADLINE = 240.0
"""Seconds for all cases on a busy machine."""

pytestmark = pytest.mark.long


async def test_no_endpoint_fails_and_every_answer_is_as_described(store: SqlStore, tmp_path: Path):
    if not PROGRAM.exists():
        missing(f"{PROGRAM} is not installed: make test does it")
    await seed(store, experiment(tutors(3), occasion="2026-W10"))
    broker = MemoryBroker(max_waiting=10_000_000)
    await broker.declare(WORK_QUEUES, BROADCASTS)
    try:
        async with asyncio.timeout(DEADLINE), serving(store, broker=broker) as address:
            code, said = await _fuzzed(address, tmp_path)
    finally:
        await broker.close()

    assert code == 0, said


async def _fuzzed(address: str, folder: Path) -> tuple[int | None, str]:
    """The exit code of schemathesis, which leaves its files in `folder`, and its report."""
    process = await asyncio.create_subprocess_exec(
        PROGRAM,
        "run",
        f"{address}/openapi.json",
        "--checks",
        ",".join(CHECKS),
        "--exclude-path-regex",
        "events$",  # a stream has no end
        "--phases",
        "examples,fuzzing",
        "--max-examples",
        str(10),
        "--no-color",
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode, said.decode(errors="replace")
