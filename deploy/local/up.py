#!/usr/bin/env python3
"""Starts all services on this machine, each as a process of its own, in the foreground.

`make up-local` starts it. RabbitMQ and PostgreSQL must be running; SOCRATIC_BROKER_URL and
SOCRATIC_STORE_URL give their addresses if they are not the usual ones. RUNNERS, JUDGES and CURATORS
set the number of each service. The runners find keys, and in SOCRATIC_ENDPOINTS the addresses that
they may call, in the environment of this script.

Metrics have fixed ports: the first runner, judge and curator use 9101, 9102 and 9103, each further
one a port ten higher. SOCRATIC_HEALTH_PORT sets another port for the first runner, and the others
follow; 0 takes free ones for all.

Ctrl-C drains all; a second Ctrl-C ends them at once. A service that ends by itself is restarted,
after a pause that doubles each time. A service that was never ready cannot start at all: then
all stop.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

BROKER_URL: Final = "amqp://guest:guest@127.0.0.1:5672/"
STORE_URL: Final = "postgresql://postgres@127.0.0.1:5432/socratic_bench"
WORKERS: Final = {"runner": "RUNNERS", "judge": "JUDGES", "curator": "CURATORS"}
FIRST_PORT: Final = "9101"
NEXT_OF_A_KIND: Final = 10
"""The distance between the ports of two services of a kind."""

FIRST_PAUSE: Final = 1.0
"""Seconds before the first restart of a service that ended by itself."""

LONGEST_PAUSE: Final = 30.0
STEADY_SECONDS: Final = 60.0
"""Seconds of life after which the first pause applies again."""

MOST: Final = 64
CONFIG: Final = "deploy/cli/socratic_cli/configs/quickstart.yaml"


@dataclass(slots=True, eq=False)
class Service:
    """One process, and its last report."""

    name: str
    module: str
    environment: Mapping[str, str]
    address: str = ""
    ready: bool = False
    """True once it was ready, also in an earlier process."""

    stopped: bool = False
    process: asyncio.subprocess.Process | None = None

    async def run(self, on_ready: asyncio.Event) -> int:
        """Start it, and show its log until it ends; returns its exit code."""
        self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            self.module,
            env=self.environment,
            stdin=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C in the terminal is for this script alone
            limit=2**20,
        )
        if self.stopped:
            self.stop()
        while self.process.stderr and (line := await self.process.stderr.readline()):
            self._show(line.decode(errors="replace").rstrip(), on_ready)
        return await self.process.wait()

    def stop(self) -> None:
        """Drain it; the second call ends it at once."""
        self.stopped = True
        if self.process is not None and self.process.returncode is None:
            self.process.terminate()

    @property
    def ending(self) -> str:
        """The end of its process, in words."""
        code = self.process.returncode if self.process else None
        if code is None or code >= 0:
            return f"ended by itself with exit code {code}"
        try:
            return f"was ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"was ended by signal {-code}"

    def _show(self, line: str, on_ready: asyncio.Event) -> None:
        try:
            fields = json.loads(line)
            event = fields.pop("event")
        except (ValueError, AttributeError, KeyError):
            say(f"{self.name:<10} | {line}")
            return
        self.address = fields.get("address", self.address)
        if event == "ready":
            self.ready = True
            on_ready.set()
        time = str(fields.pop("timestamp", ""))[11:19]
        level = fields.pop("level", "")
        fields.pop("service", None)
        rest = " ".join(f"{key}={_shown(value)}" for key, value in fields.items())
        say(f"{self.name:<10} | {time} {level:<8} {event} {rest}".rstrip())


def _shown(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


@dataclass(slots=True)
class Fleet:
    """All services, started and stopped together."""

    services: list[Service]
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> int:
        """Run all until Ctrl-C, or until one cannot start; returns the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.stop)
        async with asyncio.TaskGroup() as tasks:
            greeting = tasks.create_task(self._greet())
            ends = [tasks.create_task(self._watch(service)) for service in self.services]
            await asyncio.wait(ends)
            greeting.cancel()
        return max(end.result() for end in ends)

    def stop(self) -> None:
        """Drain all; the second call ends them at once."""
        say("Ending at once." if self.stopping.is_set() else "Draining; Ctrl-C again ends at once.")
        self.stopping.set()
        for service in self.services:
            service.stop()

    async def _watch(self, service: Service) -> int:
        """Run a service, and restart it after an unplanned end; returns 1 if it cannot start."""
        loop, pause = asyncio.get_running_loop(), FIRST_PAUSE
        while True:
            begun = loop.time()
            await service.run(self.changed)
            if self.stopping.is_set():
                return 0
            if not service.ready:
                say(f"{service.name} {service.ending} and was never ready: stopping the others.")
                self.stop()
                return 1
            if loop.time() - begun > STEADY_SECONDS:
                pause = FIRST_PAUSE
            say(f"{service.name} {service.ending}: restarting it in {pause:g} s.")
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self.stopping.wait()
                return 0
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _greet(self) -> None:
        while not all(service.ready for service in self.services):
            await self.changed.wait()
            self.changed.clear()
        for line in greeting(self.services):
            say(line)


def greeting(services: list[Service]) -> Iterator[str]:
    """Return the next commands for a person."""
    yield ""
    yield f"All {len(services)} services are ready."
    for service in services:
        what = "dashboard" if service.name == "api" else "metrics"
        path = "/" if service.name == "api" else "/metrics"
        process = service.process.pid if service.process else "?"
        yield f"  {service.name:<10} {what:<10} {service.address}{path}  process {process}"
    yield "In another terminal:"
    environment = services[0].environment
    missing = [
        name for name in ("SOCRATIC_BROKER_URL", "SOCRATIC_STORE_URL") if name not in os.environ
    ]
    if missing:
        yield "  export " + " ".join(f"'{name}={environment[name]}'" for name in missing)
    yield f"  .venv/bin/socratic-bench submit {CONFIG}"
    yield "Ctrl-C here drains all and stops."
    yield ""


def say(line: str) -> None:
    """Write a line for the person at the terminal."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def planned() -> list[Service]:
    """Return the services that the environment asks for. Raises SystemExit for a wrong number."""
    environment = {
        "SOCRATIC_BROKER_URL": BROKER_URL,
        "SOCRATIC_STORE_URL": STORE_URL,
        **os.environ,
    }
    services = [Service("api", "socratic_api", environment)]
    ports = range(65_536 - NEXT_OF_A_KIND * MOST)
    first_port = whole_number("SOCRATIC_HEALTH_PORT", FIRST_PORT, ports)
    for place, (kind, variable) in enumerate(WORKERS.items()):
        for number in range(whole_number(variable, "1", range(1, MOST + 1))):
            port = first_port and first_port + place + NEXT_OF_A_KIND * number
            told = {**environment, "SOCRATIC_HEALTH_PORT": str(port)}
            services.append(Service(f"{kind}-{number + 1}", f"socratic_{kind}", told))
    return services


def whole_number(variable: str, default: str, allowed: range) -> int:
    """Read a number from the environment, or the default. Raises SystemExit for a wrong one."""
    given = os.environ.get(variable, default)
    if not given.isdecimal() or int(given) not in allowed:
        sys.exit(f"{variable}: {given!r} is not a number from {allowed[0]} to {allowed[-1]}")
    return int(given)


if __name__ == "__main__":
    sys.exit(asyncio.run(Fleet(planned()).run()))
