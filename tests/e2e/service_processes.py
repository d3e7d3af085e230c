"""Real services, each a process of its own, started, watched and ended by a test.

async with started("runner", environment) as runner:
    await runner.ready()
    runner.kill()
    assert await runner.ended() == -signal.SIGKILL
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from tests import evidence
from tests.processes.forked import ForkedProcess
from tests.processes.forked import started as launched
from tests.servers.providers.endpoint import OPEN
from tests.servers.providers.listed import listed
from tests.waiting import PATIENCE, until, waiting_for

PREFIX = "SOCRATIC_"
ROOT = Path(__file__).parents[2]


class ServiceProcess:
    """One process of a service, with its log."""

    def __init__(self, kind: str, process: ForkedProcess | subprocess.Popen[bytes]) -> None:
        self.kind = kind
        self.logs: list[dict[str, Any]] = []
        """Its log, a line each; one that is no JSON has its text as `event`."""

        self._process = process
        self._news = asyncio.Condition()
        self._reading = asyncio.create_task(self._read(), name=f"log of {kind}")
        evidence.keep(f"log of {kind} {self.pid}", lambda: self.text)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    @property
    def most_memory(self) -> int:
        """The most bytes that it has had in memory."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        [line] = [line for line in status.splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) * 1024

    @property
    def text(self) -> str:
        """All it has written, to search in and to show."""
        return "\n".join(json.dumps(line) for line in self.logs)

    async def logged(self, event: str) -> dict[str, Any]:
        """The first line of its log with this event, waited for."""
        async with waiting_for(f"{event!r} in the log of {self.kind} {self.pid}"), self._news:
            await self._news.wait_for(lambda: self._found(event) or self._reading.done())
        return self._found(event) or self._fail(f"ended before it logged {event!r}")

    async def ready(self) -> ServiceProcess:
        """Wait until the service says that it is ready and `/readyz` agrees.

        On a busy machine its look at the broker or the store may take too long at first.
        """
        await self.logged("ready")
        await self.until_ready_is(200)
        return self

    async def until_ready_is(self, status: int) -> httpx.Response:
        """Ask whether it is ready until the answer is this one."""
        return await until(
            lambda: self.get("/readyz"),
            lambda answer: answer.status_code == status,
            f"{self.kind} {self.pid} to answer {status} at /readyz",
        )

    async def get(self, path: str) -> httpx.Response:
        """Its answer over HTTP: its API, or its health."""
        address = (await self.logged("serving"))["address"]
        async with httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client:
            return await client.get(path)

    async def metric(self, name: str, **labels: str) -> float:
        """One of its metrics, with the labels in their alphabetical order."""
        shown = ",".join(f'{label}="{labels[label]}"' for label in sorted(labels))
        series = f"{name}{{{shown}}}" if shown else name
        for line in (await self.get("/metrics")).text.splitlines():
            if line.startswith(f"{series} "):
                return float(line.rpartition(" ")[2])
        return self._fail(f"has no metric {series}")

    async def until_metric_is(self, expected: float, name: str, **labels: str) -> None:
        """Wait for a metric: it follows a moment, or one look in some seconds, after the event."""
        await until(
            lambda: self.metric(name, **labels),
            lambda value: value == expected,
            f"{name} {labels} of {self.kind} {self.pid} to be {expected}",
        )

    def terminate(self) -> None:
        """Ask it to drain and stop; the second request ends it at once."""
        self._process.terminate()

    def send_signal(self, number: int) -> None:
        """Send a signal, for example to freeze or continue the process."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it without its knowing."""
        self._process.kill()

    async def ended(self) -> int:
        """Its exit code, waited for; negative if it was a signal that ended it."""
        async with waiting_for(f"the end of {self.kind} {self.pid}"):
            await asyncio.wait([self._reading])
            return await asyncio.to_thread(self._process.wait)

    async def close(self) -> None:
        """Kill it if it is still there."""
        self._process.kill()
        await self.ended()

    def _found(self, event: str) -> dict[str, Any] | None:
        return next((line for line in self.logs if line["event"] == event), None)

    def _fail(self, what: str) -> Any:
        raise AssertionError(f"{self.kind} {self.pid} {what}")

    async def _read(self) -> None:
        lines = asyncio.StreamReader(limit=2**20)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(lines), self._process.stderr
        )
        while line := await lines.readline():
            try:
                entry = json.loads(line)
            except ValueError:
                entry = {"event": line.decode(errors="replace").rstrip()}
            async with self._news:
                self.logs.append(entry)
                self._news.notify_all()
        transport.close()
        async with self._news:
            self._news.notify_all()


async def start(
    kind: str, environment: Mapping[str, str], module: str | None = None
) -> ServiceProcess:
    """Start a service with these settings alone, on a free port. Whoever does that closes it.

    `module` is what Python runs, where it is not the service's own.
    It may call the endpoints that are open, unless the settings list others, and waits for its
    servers as long as a test does: the disk of a busy machine holds RabbitMQ up for half a minute.
    """
    inherited = {name: text for name, text in os.environ.items() if not name.startswith(PREFIX)}
    free_port = {"SOCRATIC_PORT" if kind == "api" else "SOCRATIC_HEALTH_PORT": "0"}
    patient = {"SOCRATIC_START_DEADLINE": str(PATIENCE)}
    process = launched(
        [module or f"socratic_{kind}"],
        cwd=ROOT,
        environment={**inherited, **listed(*OPEN), **free_port, **patient, **environment},
        given=environment,
    )
    return ServiceProcess(kind, process)


@asynccontextmanager
async def started(
    kind: str, environment: Mapping[str, str], module: str | None = None
) -> AsyncIterator[ServiceProcess]:
    """A service that is killed afterwards if it is still there."""
    service = await start(kind, environment, module)
    try:
        yield service
    finally:
        await service.close()


@asynccontextmanager
async def all_ready(
    environment: Mapping[str, str], *kinds: str
) -> AsyncIterator[dict[str, ServiceProcess]]:
    """One service of each kind, ready; killed afterwards if they are still there."""
    services = {kind: await start(kind, environment) for kind in kinds}
    try:
        await asyncio.gather(*(service.ready() for service in services.values()))
        yield services
    finally:
        await asyncio.gather(*(service.close() for service in services.values()))
