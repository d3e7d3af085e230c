"""Starts: of the command, of a runner by its providers, and of each AWS function.

    python -m tests.benchmarks.start [command|runner|functions] [ROUNDS]

All figures are processor times of fresh processes. What is compared takes turns, so that ratios
hold when the machine's speed drifts.

`command` starts `socratic-bench --help` beside the import of the library that parses options.

`runner` counts from the first statement on. The process imports the runner and opens its models
(opened). It then asks each model once at a closed port, which loads the library and makes the
client (asked). The yardstick is `import aiobotocore.session` alone, which every runner with Bedrock
needs. Memory is the largest resident size.

`functions` starts each function from its package under AWS's own runtime client: until the first
event is answered, the interpreter included, and for the second event. The emulator that stands for
AWS is another process. On Lambda an import has a whole processor, and an event as much of one as
the function's memory buys.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
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
from tests.aws.environment import build_packages
from tests.aws.lambda_runtime import running
from tests.aws.place import Place, a_place
from tests.aws.records import received
from tests.contract.store.facts import a_score
from tests.servers import aws_emulator
from tests.unit.events.examples import TIME, example_events

COMMANDS = {
    "socratic-bench --help": [str(Path(sys.executable).parent / "socratic-bench"), "--help"],
    "import click": [sys.executable, "-c", "import click"],
}
MODELS = {
    "reference only": ("reference/socratic",),
    "Bedrock only": ("bedrock/amazon.nova-lite-v1:0",),
    "OpenAI-compatible only": ("ollama/llama3",),
    "all of them": (
        "reference/socratic",
        "bedrock/amazon.nova-lite-v1:0",
        "ollama/llama3",
        "anthropic/claude-sonnet-5",
    ),
}
YARDSTICK = "import aiobotocore.session"
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI",
    "AWS_REGION": "us-east-1",
    "LOCAL_KEY": "a-key",
}

_BEGIN = """
import sys, time
started = time.process_time()
def passed():
    return time.process_time() - started
def report(opened, asked):
    import resource
    print(opened, asked, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
_IMPORT = f"""{_BEGIN}
{YARDSTICK}
report(passed(), passed())
"""
_RUNNER = f"""{_BEGIN}
import asyncio
import socratic_runner.entrypoints.container
from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import ModelCallFailed
from socratic_bench.providers.endpoints import ANYWHERE
from socratic_runner.models.registry import open_client

async def main():
    models = [
        TutorModel(
            id=model_id,
            base_url=None if model_id.startswith("reference/") else "http://127.0.0.1:9",
        )
        for model_id in sys.argv[1:]
    ]
    endpoints = ANYWHERE.allowing([("aws", "http://127.0.0.1:9")])
    clients = [open_client(model, endpoints=endpoints) for model in models]
    opened = passed()
    # No part of a runner, and so not to be counted before.
    from socratic_bench.testing.samples import a_question
    question = a_question()
    began = passed()
    for client in clients:
        try:
            await client.ask(question)
        except ModelCallFailed:
            pass
    report(opened, opened + passed() - began)
    for client in clients:
        await client.close()

asyncio.run(main())
"""


def command(rounds: int = 20) -> None:
    """Print the median of each command, and their ratio."""
    took: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        for name, arguments in COMMANDS.items():
            took[name].append(_processor_seconds(arguments))
    medians = {name: statistics.median(seconds) for name, seconds in took.items()}
    for name, seconds in medians.items():
        print(f"{name:24} {seconds * 1e3:6.1f} ms of processor time")
    ours, click = medians.values()
    print(f"ratio {ours / click:.2f} of {rounds} pairs", flush=True)


def _processor_seconds(arguments: list[str]) -> float:
    """User and system time of a process, from its start to its end."""
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{arguments[0]} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime


class RunnerStart(NamedTuple):
    """The start of a runner in a fresh interpreter."""

    opened: float
    """Seconds."""

    asked: float
    """Seconds."""

    kilobytes: int


def runner(rounds: int = 7) -> None:
    """Print a line for each set of models."""
    starts: dict[str, list[RunnerStart]] = {name: [] for name in (YARDSTICK, *MODELS)}
    for _ in range(rounds):
        starts[YARDSTICK].append(_start_runner(_IMPORT))
        for name, models in MODELS.items():
            starts[name].append(_start_runner(_RUNNER, *models))
    floor = min(each.asked for each in starts[YARDSTICK])
    print(f"start of a runner, best (median) of {rounds} fresh interpreters:")
    print(f"  {'':26} {'opened':>15}   {'asked':>15}  x import  memory")
    for name, taken in starts.items():
        opened, asked = [each.opened for each in taken], [each.asked for each in taken]
        print(
            f"  {name:26} {_best_and_median(opened)}   {_best_and_median(asked)}  "
            f"{min(asked) / floor:8.2f}  {min(each.kilobytes for each in taken) / 1024:3.0f} MB",
            flush=True,
        )


def _start_runner(script: str, *models: str) -> RunnerStart:
    done = subprocess.run(
        [sys.executable, "-c", script, *models],
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    opened, asked, kilobytes = done.stdout.split()
    return RunnerStart(float(opened), float(asked), int(kilobytes))


def _best_and_median(seconds: Sequence[float]) -> str:
    return f"{min(seconds) * 1000:4.0f} ({statistics.median(seconds) * 1000:4.0f}) ms"


class Function(NamedTuple):
    """A function, and how the benchmark calls it."""

    package: str
    module: str
    event: Callable[[Place], Awaitable[dict[str, Any]]]


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


def functions(rounds: int = 5) -> None:
    """Print a line for each function, with the size of its package."""
    os.environ.update(aws_emulator.credentials())
    os.environ.setdefault("SOCRATIC_LOG_LEVEL", "error")
    with tempfile.TemporaryDirectory() as folder:
        packages = Path(folder) / "packages"
        listed = build_packages(packages)["packages"]
        starts = asyncio.run(_start_functions(packages, rounds))
    print(f"cold start of a function, best of {rounds}; each has the layer besides its package:")
    print(f"  layer      {_sizes(listed['layer'])}")
    print("  function       zipped  unzipped   first event answered   second event")
    for name, taken in starts.items():
        first, second = (min(times) * 1000 for times in zip(*taken, strict=True))
        sizes = _sizes(listed[FUNCTIONS[name].package])
        print(f"  {name:10} {sizes} {first:19.0f} ms {second:11.0f} ms", flush=True)


def _sizes(package: dict[str, int]) -> str:
    return f"{package['zipped'] / 1000:6,.0f} KB {package['unzipped'] / 1000:6,.0f} KB"


async def _start_functions(packages: Path, rounds: int) -> dict[str, list[tuple[float, float]]]:
    """The seconds of each cold start: until the first event is answered, and for the second."""
    starts: dict[str, list[tuple[float, float]]] = {name: [] for name in FUNCTIONS}
    parameter = f"/benchmark-{uuid4().hex}/api-keys"
    client = get_session().create_client("ssm", endpoint_url=aws_emulator.SERVER.address())
    client.put_parameter(Name=parameter, Value="k" * 40, Type="SecureString")
    async with a_place(WORK_QUEUES, BROADCASTS) as place:
        for _ in range(rounds):
            for name, function in FUNCTIONS.items():
                starts[name].append(await _start_function(packages, function, place, parameter))
    client.delete_parameter(Name=parameter)
    return starts


async def _start_function(
    packages: Path, function: Function, place: Place, parameter: str
) -> tuple[float, float]:
    environment = {
        **place.environment,
        "SOCRATIC_API_KEYS_PARAMETER": parameter,
        "SOCRATIC_CONFIG_OBJECT": "s3://none/config.json",
        "SOCRATIC_LOG_LEVEL": "error",
    }
    used = []
    with tempfile.TemporaryDirectory() as folder:
        handler = f"{function.module}.handler"
        with running(packages, function.package, handler, Path(folder), environment) as runtime:
            process = psutil.Process(runtime.process.pid)
            for _ in range(2):
                event = await function.event(place)
                await asyncio.to_thread(runtime.invoke, event, seconds=300)
                times = process.cpu_times()
                used.append(times.user + times.system)
    first, both = used
    return first, both - first


MEASUREMENTS = {"command": command, "runner": runner, "functions": functions}


def main(name: str | None = None, *rounds: str) -> None:
    """Take one measurement, or all of them."""
    if name not in (None, *MEASUREMENTS):
        sys.exit(__doc__)
    for chosen in MEASUREMENTS if name is None else (name,):
        MEASUREMENTS[chosen](*map(int, rounds))


if __name__ == "__main__":
    main(*sys.argv[1:])
