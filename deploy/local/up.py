#!/usr/bin/env python3
"""Starts all services on this machine, each as a process of its own, in the foreground.

`make up-local` starts it. RabbitMQ and PostgreSQL must be running; SOCRATIC_BROKER_URL and
SOCRATIC_STORE_URL give their addresses if they are not the usual ones. RUNNERS, JUDGES and CURATORS
set the number of each service. The runners find keys, and in SOCRATIC_ENDPOINTS the addresses that
they may call, in the environment of this script.

With BROKER=sqs no server has to run: an emulator of AWS is started first and stopped last, and the
services use its SQS and DynamoDB. EMULATOR_PORT is its port, EMULATOR_FOLDER the folder that keeps
its data, EMULATOR_PYTHON the Python that it is installed for.

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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
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
ROOT: Final = Path(__file__).parents[2]
EMULATOR: Final = {
    "EMULATOR_PORT": "4566",
    "EMULATOR_FOLDER": str(ROOT / "demo-data" / "emulator"),
    "EMULATOR_PYTHON": str(ROOT / ".venv-servers" / "bin" / "python"),
}
"""Its settings, unless the environment has others."""

CREDENTIALS: Final = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
"""The emulator accepts any."""

CONFIG: Final = "deploy/cli/socratic_cli/configs/quickstart.yaml"


@dataclass(slots=True, eq=False)
class Service:
    """One process, and its last report."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    address: str = ""
    ready: bool = False
    """True once it was ready, also in an earlier process."""

    stopped: bool = False
    process: asyncio.subprocess.Process | None = None

    async def run(self, on_ready: asyncio.Event) -> int:
        """Start it, and show its log until it ends; returns its exit code."""
        self.process = await asyncio.create_subprocess_exec(
            *self.command,
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
    emulator: Service | None = None
    """What all of them need: started before them and stopped after them."""

    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> int:
        """Run all until Ctrl-C, or until one cannot start; returns the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.stop)
        if self.emulator is None:
            return await self._run_services()
        async with asyncio.TaskGroup() as tasks:
            end = tasks.create_task(self._watch_emulator(self.emulator))
            while not self.emulator.ready and not end.done():
                await self._change(end)
            code = 0 if self.stopping.is_set() else await self._run_services()
            self.emulator.stop()
        return max(code, end.result())

    async def _run_services(self) -> int:
        async with asyncio.TaskGroup() as tasks:
            greeting = tasks.create_task(self._greet())
            ends = [tasks.create_task(self._watch(service)) for service in self.services]
            await asyncio.wait(ends)
            greeting.cancel()
        return max(end.result() for end in ends)

    async def _change(self, end: asyncio.Task[int]) -> None:
        """Wait until a service is ready, or the emulator ends."""
        changed = asyncio.create_task(self.changed.wait())
        await asyncio.wait([changed, end], return_when=asyncio.FIRST_COMPLETED)
        changed.cancel()
        self.changed.clear()

    async def _watch_emulator(self, emulator: Service) -> int:
        """Run it to its end; without it no service goes on. Returns 1 if it ended by itself."""
        await emulator.run(self.changed)
        if emulator.stopped:
            return 0
        say(f"The emulator {emulator.ending}: stopping the services.")
        self.stop()
        return 1

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
        for line in greeting(self.services, self.emulator):
            say(line)


def greeting(services: list[Service], emulator: Service | None) -> Iterator[str]:
    """Return the next commands for a person."""
    yield ""
    yield f"All {len(services)} services are ready."
    if emulator is not None:
        process = emulator.process.pid if emulator.process else "?"
        yield f"  {'emulator':<10} {'AWS':<10} {emulator.address}  process {process}"
        yield f"  {'':<10} keeps its data in {emulator.environment['EMULATOR_FOLDER']} at its stop"
    for service in services:
        what = "dashboard" if service.name == "api" else "metrics"
        path = "/" if service.name == "api" else "/metrics"
        process = service.process.pid if service.process else "?"
        yield f"  {service.name:<10} {what:<10} {service.address}{path}  process {process}"
    yield "In another terminal:"
    environment = services[0].environment
    names = ("SOCRATIC_BROKER_URL", "SOCRATIC_STORE_URL", *CREDENTIALS)
    missing = [
        name for name in names if name in environment and environment[name] != os.environ.get(name)
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
    """Return the services that the environment asks for. Raises SystemExit for a wrong setting."""
    environment = addresses()
    services = [Service("api", a_module("socratic_api"), environment)]
    ports = range(65_536 - NEXT_OF_A_KIND * MOST)
    first_port = whole_number("SOCRATIC_HEALTH_PORT", FIRST_PORT, ports)
    for place, (kind, variable) in enumerate(WORKERS.items()):
        for number in range(whole_number(variable, "1", range(1, MOST + 1))):
            port = first_port and first_port + place + NEXT_OF_A_KIND * number
            told = {**environment, "SOCRATIC_HEALTH_PORT": str(port)}
            services.append(Service(f"{kind}-{number + 1}", a_module(f"socratic_{kind}"), told))
    return services


def a_module(name: str) -> list[str]:
    """Return the command that runs a module."""
    return [sys.executable, "-m", name]


def emulated() -> bool:
    """Whether an emulator of AWS serves. Raises SystemExit for an unknown broker."""
    broker = os.environ.get("BROKER", "rabbitmq")
    if broker not in {"rabbitmq", "sqs"}:
        sys.exit(f"BROKER: {broker!r} is neither rabbitmq nor sqs")
    return broker == "sqs"


def addresses() -> dict[str, str]:
    """Return the environment of a service: where its broker and its store are."""
    if not emulated():
        return {"SOCRATIC_BROKER_URL": BROKER_URL, "SOCRATIC_STORE_URL": STORE_URL, **os.environ}
    port = os.environ.get("EMULATOR_PORT", EMULATOR["EMULATOR_PORT"])
    options = f"endpoint=http://127.0.0.1:{port}&bucket=socratic-bench"
    # Those of the person come first, since runners may call Bedrock by them.
    own = os.environ.keys() & {"AWS_ACCESS_KEY_ID", "AWS_PROFILE"}
    return {
        **os.environ,
        **({} if own else CREDENTIALS),
        "SOCRATIC_BROKER_URL": f"sqs://us-east-1/socratic-bench?{options}",
        "SOCRATIC_STORE_URL": f"dynamodb://socratic-bench?region=us-east-1&{options}",
    }


def planned_emulator() -> Service | None:
    """Return the emulator of AWS, if the environment asks for it."""
    if not emulated():
        return None
    environment = {**EMULATOR, **os.environ}
    script = str(ROOT / "deploy" / "emulator" / "emulator.py")
    return Service("emulator", [environment["EMULATOR_PYTHON"], script], environment)


def whole_number(variable: str, default: str, allowed: range) -> int:
    """Read a number from the environment, or the default. Raises SystemExit for a wrong one."""
    given = os.environ.get(variable, default)
    if not given.isdecimal() or int(given) not in allowed:
        sys.exit(f"{variable}: {given!r} is not a number from {allowed[0]} to {allowed[-1]}")
    return int(given)


if __name__ == "__main__":
    sys.exit(asyncio.run(Fleet(planned(), planned_emulator()).run()))
