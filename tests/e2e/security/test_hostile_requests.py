"""A real API process among hostile clients: it answers the others, and stays within its memory."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx
import pytest

from socratic_api.routes.score import LARGE_AT_ONCE
from socratic_bench.adapters.stores.sql.store import SqlStore
from tests.built_pages import require_pages
from tests.dashboard.seeding import experiment, seed, tutors
from tests.e2e.service_processes import PREFIX, ServiceProcess
from tests.lengths import at_length
from tests.waiting import PATIENCE, until, waiting_for

FILES = 1024
"""Files the API may open, as outside of packages and containers."""

MEMORY = 256 * 1024 * 1024
"""Bytes that the API has in a container."""

CROWD = 400
PATHS = ["/healthz", "/api/model-comparison", "/", "/api/experiments", "/readyz"]
MIGHT = "might " * 350
BATCHES = LARGE_AT_ONCE + 1
"""One of them waits while as many as the API holds at once are scored."""

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="what a process takes is read from /proc"
)


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[ServiceProcess]:
    require_pages()
    url = f"sqlite:///{tmp_path}/benchmark.db"
    store = SqlStore.from_url(url)
    await store.prepare()
    await seed(store, experiment(tutors(25)))
    await store.close()
    inherited = {name: text for name, text in os.environ.items() if not name.startswith(PREFIX)}
    # Started as anywhere else: its memory is measured, and its files are limited.
    process = subprocess.Popen(  # noqa: ASYNC220 - it only forks
        ["sh", "-c", f'ulimit -n {FILES} && exec "$@"', "sh", sys.executable, "-m", "socratic_api"],
        env={**inherited, "SOCRATIC_PORT": "0", "SOCRATIC_STORE_URL": url},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    service = ServiceProcess("api", process)
    try:
        yield await service.ready()
    finally:
        await service.close()


def assert_within_memory(service: ServiceProcess) -> None:
    most = service.most_memory
    print(f"{most / 1e6:.0f} MB at most")
    assert most < MEMORY


def files_of(service: ServiceProcess) -> int:
    """How many files a process has open."""
    return len(os.listdir(f"/proc/{service.pid}/fd"))  # noqa: PTH208 - one call is at one moment


class Bystander:
    """A client that asks all the time; see bystander.py."""

    def __init__(self) -> None:
        self.answered: list[tuple[str, int]] = []
        self._news = asyncio.Event()

    @asynccontextmanager
    async def asking(self, address: str) -> AsyncIterator[None]:
        """Ask while the context is open, which is not before the first round of answers."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.e2e.security.bystander",
            address,
            *PATHS,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        reading = asyncio.create_task(self._read(process.stdout))
        try:
            await self.has_answers(len(PATHS))
            self.answered.clear()
            yield
        finally:
            assert process.stdin is not None
            process.stdin.close()
            await reading
            assert await process.wait() == 0

    async def _read(self, answers: asyncio.StreamReader) -> None:
        async for line in answers:
            self.answered.append(json.loads(line))
            self._news.set()

    async def has_answers(self, count: int) -> None:
        """Wait until it has so many answers: a tenth of a few is none."""
        while len(self.answered) < count:
            self._news.clear()
            await self._news.wait()

    def assert_served(self) -> None:
        """Everything that it asked was answered."""
        assert len(self.answered) > len(PATHS)
        assert {status for _, status in self.answered} == {200}


def request(method: str, path: str, body: bytes = b"", **headers: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "host: 127.0.0.1", f"content-length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def scoring(body: bytes, **headers: str) -> bytes:
    return request("POST", "/api/score", body, content_type="application/json", **headers)


def batch(count: int, text: str) -> bytes:
    return json.dumps({"items": [{"text": text}] * count}).encode()


LARGE = scoring(batch(990, MIGHT))
"""2 MB, and an answer of 23 MB."""


def hostile_requests() -> Iterator[bytes]:
    """One after the other, without end."""
    depth = 50_000
    yield from itertools.cycle(
        [
            LARGE,
            scoring(b'{"text": "' + b"might " * 160_000 + b'"}'),
            scoring(b'{"items": [' + b"{}," * 600_000 + b"{}]}"),
            scoring(b'{"items": [' + b'{"text": 1},' * 999 + b"{}]}"),
            scoring(b"[" * depth + b"]" * depth),
            scoring(b'{"a":' * depth + b"1" + b"}" * depth),
            scoring(batch(7, MIGHT)),
            scoring(b'{"text": "' + "🦉".encode() * 450_000 + b'"}'),
            scoring(b'{"text": "a", "output_tokens": 1' + b"0" * 100_000 + b"}"),
            scoring(b"x" * 1000)[:-500],  # the rest never comes
            scoring(b"x" * 4_000_000),
            request("POST", "/api/score", batch(99, MIGHT), content_type="text/plain"),
            request("GET", "/api/experiments?limit=500&offset=7"),
            request("GET", "/api/model-comparison?experiment=all"),
            request("GET", "/api/cost-analysis?experiment=" + "x" * 200),
            request("GET", "/metrics"),
            request("GET", "/", x_large="x" * 10_000) * 20,  # pipelined
            request("GET", "/", x_large="x" * 100_000),
            b"GET / HTTP/1.1\r\nx: y\r\n" * 100,
            b"\x16\x03\x01" + os.urandom(300),
            b"",
        ]
    )


async def send(address: str, sent: bytes, *, read: bool, done: asyncio.Semaphore) -> None:
    """Send bytes and return the answer, until the connection ends; empty without an answer."""
    host, _, port = address.removeprefix("http://").partition(":")
    with suppress(OSError):
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(sent)
            done.release()
            await writer.drain()
            while read and await reader.read(2**18):
                pass
            if not read:
                await asyncio.Event().wait()
        finally:
            writer.transport.abort()


@asynccontextmanager
async def crowd(address: str, requests: Iterator[bytes], count: int) -> AsyncIterator[None]:
    """So many hostile clients at once; every other one does not read. All are there."""
    done = asyncio.Semaphore(0)
    tasks = [
        asyncio.create_task(send(address, next(requests), read=number % 2 == 0, done=done))
        for number in range(count)
    ]
    try:
        for _ in range(count):
            await done.acquire()
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def address_of(api: ServiceProcess) -> str:
    return str((await api.logged("serving"))["address"])


@pytest.mark.two_lengths
async def test_four_hundred_hostile_requests_at_once_keep_nobody_else_waiting(api: ServiceProcess):
    address = await address_of(api)
    bystander = Bystander()
    async with (
        waiting_for("answers among hostile requests"),
        bystander.asking(address),
        crowd(address, hostile_requests(), CROWD),
    ):
        await bystander.has_answers(at_length(60, 200))  # what is in hand goes on meanwhile
    bystander.assert_served()
    assert_within_memory(api)


@pytest.mark.long
async def test_more_large_batches_than_the_api_holds_at_once_are_all_scored(api: ServiceProcess):
    address = await address_of(api)
    bystander = Bystander()
    content = batch(990, MIGHT)

    async def score() -> int:
        """Post it again as often as the API asks for that, which a slow machine makes it do."""
        headers = {"content-type": "application/json"}
        async with httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client:
            while True:
                answer = await client.post("/api/score", content=content, headers=headers)
                if answer.status_code != 503:
                    return answer.text.count('"overall"')
                await asyncio.sleep(float(answer.headers["retry-after"]))

    # A busy machine takes ten times as long for the 10 s of work that these are.
    async with waiting_for("the scores of large batches"), bystander.asking(address):
        assert await asyncio.gather(*(score() for _ in range(BATCHES))) == [990] * BATCHES
        await bystander.has_answers(len(PATHS) + 1)
    bystander.assert_served()
    assert_within_memory(api)


@pytest.mark.two_lengths
async def test_half_open_connections_up_to_the_limit_of_files_keep_nobody_out(
    api: ServiceProcess,
):
    address = await address_of(api)
    heads = [b"", b"GET / HTTP/1.1\r\nhost: ", scoring(b"x" * 99)[:-9]]
    bystander = Bystander()

    async def files() -> int:
        return files_of(api)

    async with (
        waiting_for("answers among half-open connections"),
        bystander.asking(address),
        crowd(address, itertools.cycle(heads), FILES),
    ):
        await asyncio.sleep(at_length(2.0, 10.0))
        await bystander.has_answers(len(PATHS) + 1)
        assert await files() < FILES
    await until(files, lambda count: count < 100, "the end of all connections")
    bystander.assert_served()
    assert_within_memory(api)
    assert "system resource" not in api.text
