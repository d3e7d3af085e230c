"""The cold start of each AWS function, from its package, under AWS's own runtime client.

    python -m tests.benchmarks.function_start [ROUNDS]

Processor time of a fresh process, from the packages that a deployment uses: to import the handler;
until the first event is answered, the interpreter and the client of the runtime included; for the
second event. The emulator that stands for AWS is another process. The functions take turns. On
Lambda an import has a whole processor, and an event as much of one as the function's memory buys.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import psutil
from botocore.session import get_session

from socratic_bench.consuming.queues import (
    BROADCASTS,
    CURATOR_RESPONSE_SCORED,
    JUDGE_RESPONSE_RECORDED,
    RUNNER_RUN_REQUESTED,
    WORK_QUEUES,
)
from socratic_bench.domain.experiment.manifest import Experiment, Manifest, TutorModel
from socratic_bench.domain.response import Response
from socratic_bench.events.codec import Event, to_message
from socratic_bench.events.event_types import ResponseRecorded, ResponseScored, RunRequested
from socratic_bench.planning.config_file.scenario_selection import load_pack
from tests.aws.environment import build_packages, python
from tests.aws.lambda_runtime import running
from tests.aws.place import Place, a_place
from tests.aws.records import received
from tests.contract.store.facts import a_score
from tests.servers import aws_emulator
from tests.unit.events.examples import TIME, example_events

ROUNDS = 5
_IMPORT = """
import sys, time
started = time.process_time()
__import__(sys.argv[1])
print(time.process_time() - started, len(sys.modules))
"""

MakeEvent = Callable[[Place], Awaitable[dict[str, Any]]]


class Function(NamedTuple):
    """A function, and how the benchmark calls it."""

    package: str
    module: str
    event: MakeEvent


class Sample(NamedTuple):
    """One cold start."""

    imported: float
    """Seconds."""

    modules: int
    answered: float
    """Seconds, from the start of the process on."""

    again: float
    """Seconds for the second event."""


async def experiment(place: Place) -> Experiment:
    """A registered experiment that nobody has seen before."""
    manifest = Manifest(
        models=(TutorModel(id="reference/socratic"),), scenarios=load_pack(), repeats=1
    )
    made = Experiment(manifest=manifest, occasion=uuid4().hex, created_at=TIME)
    await place.store.register(made)
    return made


async def messages(place: Place, queue: str, events: list[Event]) -> dict[str, Any]:
    """What Lambda hands to a function of these events."""
    await place.broker.publish([to_message(each) for each in events])
    return await received(place.broker_url, queue)


async def requested(place: Place) -> dict[str, Any]:
    """A model's runs, each on a scenario."""
    runs = (await experiment(place)).runs()
    events: list[Event] = [RunRequested.of(run, source="test", time=TIME) for run in runs]
    return await messages(place, RUNNER_RUN_REQUESTED.name, events)


async def recorded(place: Place) -> dict[str, Any]:
    """As many responses."""
    response = example_events()["response.recorded"].data
    assert isinstance(response, Response)
    runs = (await experiment(place)).runs()
    answers = [response.model_copy(update={"run": run}) for run in runs]
    events: list[Event] = [ResponseRecorded.of(each, source="test") for each in answers]
    return await messages(place, JUDGE_RESPONSE_RECORDED.name, events)


async def scored(place: Place) -> dict[str, Any]:
    """As many scores."""
    runs = (await experiment(place)).runs()
    events: list[Event] = [ResponseScored.of(a_score(r), source="test", time=TIME) for r in runs]
    return await messages(place, CURATOR_RESPONSE_SCORED.name, events)


async def a_minute(place: Place) -> dict[str, Any]:
    """The look for lost work."""
    return {"task": "reconcile"}


async def leaderboard(place: Place) -> dict[str, Any]:
    """A request for the leaderboard."""
    path = "/api/model-comparison"
    http = {"method": "GET", "path": path, "protocol": "HTTP/1.1", "sourceIp": "1.2.3.4"}
    return {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"host": "api.example"},
        "requestContext": {"domainName": "api.example", "http": http},
        "isBase64Encoded": False,
    }


FUNCTIONS = {
    "runner": Function("runner", "socratic_runner.entrypoints.lambda_function", requested),
    "judge": Function("judge", "socratic_judge.entrypoints.lambda_function", recorded),
    "curator": Function("curator", "socratic_curator.entrypoints.lambda_function", scored),
    "scheduler": Function("curator", "socratic_curator.entrypoints.scheduler_function", a_minute),
    "api": Function("api", "socratic_api.entrypoints.lambda_function", leaderboard),
}


def imported(packages: Path, function: Function) -> tuple[float, int]:
    """The time of an import by a fresh interpreter, and how many modules are there after it."""
    folders = [packages / f"{function.package}-unzipped", packages / "layer-unzipped" / "python"]
    done = subprocess.run(
        [python(), "-S", "-c", _IMPORT, function.module],
        env={"PYTHONPATH": ":".join(map(str, folders)), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, modules = done.stdout.split()
    return float(seconds), int(modules)


async def sample(packages: Path, function: Function, place: Place, parameter: str) -> Sample:
    """Start a function once, and give it two events."""
    environment = {
        **place.environment,
        "SOCRATIC_API_KEYS_PARAMETER": parameter,
        "SOCRATIC_CONFIG_OBJECT": "s3://none/config.json",
        "SOCRATIC_LOG_LEVEL": "error",
    }
    used = [0.0]
    with tempfile.TemporaryDirectory() as folder:
        handler = f"{function.module}.handler"
        with running(packages, function.package, handler, Path(folder), environment) as runtime:
            process = psutil.Process(runtime.process.pid)
            for _ in range(2):
                event = await function.event(place)
                await asyncio.to_thread(runtime.invoke, event, seconds=300)
                times = process.cpu_times()
                used.append(times.user + times.system)
    return Sample(*imported(packages, function), used[1], used[2] - used[1])


async def measure(packages: Path, rounds: int) -> dict[str, list[Sample]]:
    """The cold starts of each function."""
    samples: dict[str, list[Sample]] = {name: [] for name in FUNCTIONS}
    parameter = f"/benchmark-{uuid4().hex}/api-keys"
    client = get_session().create_client("ssm", endpoint_url=aws_emulator.SERVER.address())
    client.put_parameter(Name=parameter, Value="k" * 40, Type="SecureString")
    async with AsyncExitStack() as opened:
        place = await opened.enter_async_context(a_place(WORK_QUEUES, BROADCASTS))
        for _ in range(rounds):
            for name, function in FUNCTIONS.items():
                samples[name].append(await sample(packages, function, place, parameter))
    client.delete_parameter(Name=parameter)
    return samples


def main(rounds: int = ROUNDS) -> None:
    """Print the table."""
    os.environ.update(aws_emulator.credentials())
    os.environ.setdefault("SOCRATIC_LOG_LEVEL", "error")
    with tempfile.TemporaryDirectory() as folder:
        packages = Path(folder) / "packages"
        listed = build_packages(packages)["packages"]
        samples = asyncio.run(measure(packages, rounds))
    layer = listed["layer"]
    print(f"cold start of a function, best of {rounds}; each has the layer besides its package:")
    print(f"  layer      {_kilobytes(layer['zipped'])} zipped {_kilobytes(layer['unzipped'])}")
    print("  function     zipped  unzipped  modules   imported  first event answered  second event")
    for name, taken in samples.items():
        package = listed[FUNCTIONS[name].package]
        print(
            f"  {name:9} {_kilobytes(package['zipped'])} {_kilobytes(package['unzipped'])}"
            f"   {taken[0].modules:6} {_milliseconds(each.imported for each in taken)}"
            f"            {_milliseconds(each.answered for each in taken)}"
            f"    {_milliseconds(each.again for each in taken)}"
        )


def _kilobytes(size: int) -> str:
    return f"{size / 1000:6,.0f} KB"


def _milliseconds(seconds: Any) -> str:
    return f"{min(seconds) * 1000:7.0f} ms"


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
