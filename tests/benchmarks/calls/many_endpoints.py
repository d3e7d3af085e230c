"""25 endpoints of 200 ms with 4 calls in flight each, called by one runner over HTTP.

    python -m tests.benchmarks.calls.many_endpoints [RUNS OF A MODEL]

The whole benchmark runs in one process, with SQLite; the endpoints are another process on the same
machine. The measured time begins with the plan, after the check of the models that `run` makes too,
and ends when all runs are aggregated; it includes the first call of each model, which is alone.
Then one of the endpoints hangs, which should not slow down the other 24.

The ideal client needs no time itself: from the first moment on it has four calls in flight to each
model until that has no more. The endpoints draw the same latencies in each trial, so
`ideal_seconds` knows how long the slowest model takes. Nothing reaches the ideal: endpoints, client
and kernel share two cores. So `bare_calls` makes the same calls in the same minute, and the
benchmark prints what share of its rate the runner keeps. Start and end take about the same time for
any number of runs.

The latencies scatter by up to 60 ms around 200 ms; for comparison they are also all equal. Equal
latencies bring 100 replies at one instant, and the work for each of them delays all others.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from heapq import heapreplace
from itertools import count, islice
from typing import NamedTuple

from socratic_bench.adapters.clock import SystemClock
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.concurrency import event_loop
from socratic_bench.domain.experiment.manifest import Experiment, Limits, Manifest, TutorModel
from socratic_bench.domain.scenario import Scenario
from socratic_bench.providers.endpoints import ANYWHERE
from socratic_cli.embedded import Benchmark
from socratic_runner.models.registry import check_access, open_client
from tests.benchmarks.calls.bare_calls import bare_calls
from tests.benchmarks.calls.endpoint_server import latencies

RUNS = 1_600
MODELS = 25
IN_FLIGHT = 4
LATENCY_MS = 200
SCATTER_MS = 60
IDEAL = MODELS * IN_FLIGHT * 1000 / LATENCY_MS
"""Runs a second in the midst of a benchmark."""

_trials = count(1)


@contextmanager
def endpoints() -> Iterator[str]:
    """The address of the endpoints."""
    command = [sys.executable, "-m", "tests.benchmarks.calls.endpoint_server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def experiment(
    base_url: str, runs: int, *, stream: bool, hanging: int, scatter: bool = True
) -> Experiment:
    """One scenario for all models, the first `hanging` of which never answer."""
    latency = f"{LATENCY_MS}~{SCATTER_MS}" if scatter else f"{LATENCY_MS}"
    trial = next(_trials)

    def model(number: int) -> TutorModel:
        path = "hang" if number < hanging else latency
        return TutorModel(
            id=f"openai-compatible/{_name(number)}",
            base_url=f"{base_url}/{path}/{trial}/{_name(number)}/v1",
            options={"stream": stream},
            limits=Limits(concurrency=IN_FLIGHT, timeout_seconds=600),
        )

    manifest = Manifest(
        models=tuple(model(number) for number in range(MODELS)),
        scenarios=(Scenario(id="one", dimension="ambiguous", prompt="Where do I begin?"),),
        repeats=runs,
    )
    return Experiment(manifest=manifest, created_at=SystemClock().now())


def _name(number: int) -> str:
    return f"model-{number:02}"


def ideal_seconds(runs: int, *, scatter: bool) -> float:
    """How long a client that needs no time itself takes for so many runs of each model."""
    return max(
        _shortest(islice(latencies(_name(number), LATENCY_MS, SCATTER_MS * scatter), runs))
        for number in range(MODELS)
    )


def _shortest(milliseconds: Iterable[float]) -> float:
    """The seconds of one model's calls, of which four are always in flight."""
    ends = [0.0] * IN_FLIGHT
    for each in milliseconds:
        heapreplace(ends, ends[0] + each)
    return max(ends) / 1000


class Rate(NamedTuple):
    """Runs of the models that answer."""

    seconds: float
    """From the start until all are in their cells."""

    whole: float
    """Runs a second in that time."""

    steady: float
    """Runs a second without the first and the last fifth of the runs."""


async def rate(planned: Experiment, *, hanging: int = 0) -> Rate:
    """How fast the runs of the models that answer come into their cells."""
    answering = (MODELS - hanging) * planned.manifest.repeats
    for model in planned.manifest.models:
        check_access(model, endpoints=ANYWHERE)
    with tempfile.TemporaryDirectory() as folder:
        store = SqlStore.from_url(f"sqlite:///{folder}/benchmark.db")
        await store.prepare()
        await store.register(planned)
        benchmark = Benchmark(
            planned, store, partial(open_client, endpoints=ANYWHERE), limits=store
        )
        started = time.perf_counter()
        executing = asyncio.create_task(benchmark.execute())
        seen = [(0.0, 0)]
        try:
            while seen[-1][1] < answering:
                await asyncio.wait([executing], timeout=0.1)
                done = (await store.progress(planned.experiment_id)).done
                seen.append((time.perf_counter() - started, done))
            if not hanging:
                await executing
            seconds = seen[-1][0]
            return Rate(seconds, answering / seconds, _steady(seen, answering))
        finally:
            executing.cancel()
            await asyncio.wait([executing])
            await store.close()


def _steady(seen: list[tuple[float, int]], runs: int) -> float:
    """Runs a second between a fifth and four fifths of `runs`, by what was seen of them when."""
    since, first = next(each for each in seen if each[1] >= runs / 5)
    until, last = next(each for each in seen if each[1] >= runs * 4 / 5)
    return (last - first) / (until - since)


async def measure(runs: int) -> None:
    """Print a line for each kind of latencies and replies."""
    with endpoints() as base_url:
        for scatter in (True, False):
            ideal = ideal_seconds(runs, scatter=scatter)
            bare = await bare_calls(
                experiment(base_url, runs, stream=False, hanging=0, scatter=scatter)
            )
            rate_of_bare = bare.calls / bare.seconds
            latencies = f"{LATENCY_MS} ms{f' by +- {SCATTER_MS} ms' if scatter else ' exactly'}"
            print(
                f"{MODELS} endpoints of {latencies}, {IN_FLIGHT} in flight each, a bare client: "
                f"{rate_of_bare:.0f} runs/s, {ideal / bare.seconds:.1%} of the ideal",
                flush=True,
            )
            for stream in (False, True):
                ours = await rate(
                    experiment(base_url, runs, stream=stream, hanging=0, scatter=scatter)
                )
                print(
                    f"  {'streamed' if stream else 'whole':8} {ours.whole:.0f} runs/s, "
                    f"{ours.whole / rate_of_bare:.1%} of the bare client's, "
                    f"{ideal / ours.seconds:.1%} of the ideal; "
                    f"{ours.steady / IDEAL:.1%} of {IDEAL:.0f} runs/s without start and end",
                    flush=True,
                )
                if scatter:
                    others = await rate(
                        experiment(base_url, runs, stream=stream, hanging=1), hanging=1
                    )
                    kept = others.whole / (ours.whole * (MODELS - 1) / MODELS)
                    print(f"           one hangs: the others keep {kept:.1%} of that", flush=True)


def main(runs: int = RUNS) -> None:
    """Measure with so many runs of each model."""
    event_loop.run(measure(runs))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
