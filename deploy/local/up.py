#!/usr/bin/env python3
"""Starts all services on this machine, each as a process of its own, in the foreground.

`make up-local` starts it. RabbitMQ and PostgreSQL must be running; SOCRATIC_BROKER_URL and
SOCRATIC_STORE_URL give their addresses if they are not the usual ones. RUNNERS, JUDGES and CURATORS
set the number of each service. The runners find keys, and in SOCRATIC_ENDPOINTS the addresses that
they may call, in the environment of this script.

With BROKER=sqs no server has to run: an emulator of AWS is started first and stopped last. The
settings that begin with EMULATOR_ are its port, its folder of data and the Python that has it.

Metrics have fixed ports: the first runner, judge and curator use 9101, 9102 and 9103, each further
one a port ten higher. SOCRATIC_HEALTH_PORT sets another first port; 0 takes free ones for all.

Ctrl-C drains all; a second Ctrl-C ends them at once. A service that ends by itself is restarted,
after a second. One that was never ready cannot start at all: then all stop.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
SERVERS: Final = {
    "SOCRATIC_BROKER_URL": "amqp://guest:guest@127.0.0.1:5672/",
    "SOCRATIC_STORE_URL": "postgresql://postgres@127.0.0.1:5432/socratic_bench",
}
EMULATOR: Final = {
    "EMULATOR_PORT": "4566",
    "EMULATOR_FOLDER": str(ROOT / "demo-data" / "emulator"),
    "EMULATOR_PYTHON": str(ROOT / ".venv-servers" / "bin" / "python"),
}
CREDENTIALS: Final = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
"""The emulator accepts any."""

WORKERS: Final = {"runner": "RUNNERS", "judge": "JUDGES", "curator": "CURATORS"}
PAUSE_SECONDS: Final = 1.0


@dataclass(slots=True, eq=False)
class Service:
    """One process after the other, and the last report."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    address: str = ""
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once it was ready, also in an earlier process."""

    stopped: bool = False
    process: asyncio.subprocess.Process | None = None

    async def run(self) -> str:
        """Start it, and show its log until it ends; returns its end in words."""
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
            self.show(line.decode(errors="replace").rstrip())
        code = await self.process.wait()
        if code < 0:
            return f"was ended by {signal.Signals(-code).name}"
        return f"ended by itself with exit code {code}"

    def stop(self) -> None:
        """Drain it; the second call ends it at once."""
        self.stopped = True
        if self.process is not None and self.process.returncode is None:
            self.process.terminate()

    def show(self, line: str) -> None:
        """Write a line of its log for a person, and take from it what the service reports."""
        with suppress(ValueError, AttributeError, KeyError, TypeError):
            fields = json.loads(line)
            event = fields.pop("event")
            self.address = fields.get("address", self.address)
            if event == "ready":
                self.ready.set()
            time, level = str(fields.pop("timestamp", ""))[11:19], fields.pop("level", "")
            fields.pop("service", None)
            rest = " ".join(f"{key}={value}" for key, value in fields.items())
            line = f"{time} {level:<8} {event} {rest}".rstrip()
        say(f"{self.name:<10} | {line}")


@dataclass(slots=True)
class Fleet:
    """All services, and the emulator that they may need."""

    services: list[Service]
    emulator: Service | None
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> int:
        """Run all until Ctrl-C, or until one cannot start; returns the exit code."""
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self.stop)
        async with asyncio.TaskGroup() as tasks:
            codes = []
            if self.emulator:
                codes.append(tasks.create_task(self.keep(self.emulator)))
                await self.until_ready(self.emulator)
            ends = [tasks.create_task(self.keep(service)) for service in self.services]
            await self.until_ready(*self.services)
            if not self.stopping.is_set():
                say("\n".join(greeting(self.services, self.emulator)))
            await asyncio.wait(ends)
            if self.emulator:
                self.emulator.stop()
        return max(task.result() for task in codes + ends)

    def stop(self) -> None:
        """Drain all; the second call ends them at once."""
        say("Ending at once." if self.stopping.is_set() else "Draining; Ctrl-C again ends at once.")
        self.stopping.set()
        for service in self.services:
            service.stop()

    async def keep(self, service: Service) -> int:
        """Run a service, and restart it after an unplanned end; returns 1 if it cannot start.

        An emulator is not restarted, because its data is lost.
        """
        while not self.stopping.is_set():
            ending = await service.run()
            if self.stopping.is_set():
                break
            if service is self.emulator or not service.ready.is_set():
                never = "" if service.ready.is_set() else " and was never ready"
                say(f"{service.name} {ending}{never}: stopping the others.")
                self.stop()
                return 1
            say(f"{service.name} {ending}: restarting it in {PAUSE_SECONDS:g} s.")
            with suppress(TimeoutError):
                await asyncio.wait_for(self.stopping.wait(), PAUSE_SECONDS)
        return 0

    async def until_ready(self, *services: Service) -> None:
        """Wait until the services are ready, or are to stop."""
        stopping = asyncio.ensure_future(self.stopping.wait())
        for service in services:
            ready = asyncio.ensure_future(service.ready.wait())
            await asyncio.wait([ready, stopping], return_when=asyncio.FIRST_COMPLETED)
            ready.cancel()
        stopping.cancel()


def greeting(services: list[Service], emulator: Service | None) -> Iterator[str]:
    """The addresses and the next commands, for a person."""
    yield f"\nAll {len(services)} services are ready."
    for service in [emulator, *services] if emulator else services:
        what = {"emulator": "AWS", "api": "dashboard"}.get(service.name, "metrics")
        path = {"AWS": "", "dashboard": "/"}.get(what, "/metrics")
        process = service.process.pid if service.process else "?"
        yield f"  {service.name:<10} {what:<10} {service.address}{path}  process {process}"
    if emulator:
        yield f"  The emulator saves {emulator.environment['EMULATOR_FOLDER']} at its stop."
    yield "In another terminal:"
    told = services[0].environment
    names = [name for name in (*SERVERS, *CREDENTIALS) if told.get(name) != os.environ.get(name)]
    if names:
        yield "  export " + " ".join(f"'{name}={told[name]}'" for name in names)
    yield "  .venv/bin/socratic-bench submit deploy/cli/socratic_cli/configs/quickstart.yaml"
    yield "Ctrl-C here drains all and stops.\n"


def say(line: str) -> None:
    """Write for the person at the terminal."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def planned(given: Mapping[str, str]) -> Fleet:
    """What these settings ask for. Raises SystemExit for a wrong one."""
    environment, emulator = {**SERVERS, **given}, None
    broker = given.get("BROKER", "rabbitmq")
    if broker not in {"rabbitmq", "sqs"}:
        sys.exit(f"BROKER: {broker!r} is neither rabbitmq nor sqs")
    if broker == "sqs":
        settings = {**EMULATOR, **given}
        script, python = (
            str(ROOT / "deploy" / "emulator" / "emulator.py"),
            settings["EMULATOR_PYTHON"],
        )
        if not shutil.which(python):
            sys.exit(
                f"EMULATOR_PYTHON: {python} is missing; make .venv-servers/.emulator installs it"
            )
        emulator = Service("emulator", [python, script], settings)
        address = f"endpoint=http://127.0.0.1:{settings['EMULATOR_PORT']}&bucket=socratic-bench"
        # Those of the person come first, since runners may call Bedrock by them.
        own = given.keys() & {"AWS_ACCESS_KEY_ID", "AWS_PROFILE"}
        environment |= {
            **({} if own else CREDENTIALS),
            "SOCRATIC_BROKER_URL": f"sqs://us-east-1/socratic-bench?{address}",
            "SOCRATIC_STORE_URL": f"dynamodb://socratic-bench?region=us-east-1&{address}",
        }
    first = whole_number(given, "SOCRATIC_HEALTH_PORT", 9101)
    services = [Service("api", [sys.executable, "-m", "socratic_api"], environment)]
    for place, (kind, variable) in enumerate(WORKERS.items()):
        for number in range(whole_number(given, variable, 1)):
            told = {"SOCRATIC_HEALTH_PORT": str(first and first + place + 10 * number)}
            command = [sys.executable, "-m", f"socratic_{kind}"]
            services.append(Service(f"{kind}-{number + 1}", command, environment | told))
    return Fleet(services, emulator)


def whole_number(given: Mapping[str, str], variable: str, default: int) -> int:
    """A number from the settings, or the default. Raises SystemExit for a wrong one."""
    text = given.get(variable, str(default))
    if not text.isdecimal():
        sys.exit(f"{variable}: {text!r} is not a whole number")
    return int(text)


if __name__ == "__main__":
    sys.exit(asyncio.run(planned(os.environ).run()))
