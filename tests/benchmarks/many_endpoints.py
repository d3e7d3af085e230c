"""25 endpoints of 200 ms with 4 calls in flight each, called by one runner over HTTP.

    python -m tests.benchmarks.many_endpoints [RUNS OF A MODEL]

The whole benchmark runs in one process, with SQLite; the endpoints are another process on the same
machine. The ideal is 25 x 4 calls in every 200 ms, from the first moment on. The measured time
includes the start of the benchmark and the first call of each model, which is alone. Then one of
the endpoints hangs, which should not slow down the other 24.

Chance alone keeps every runner below the ideal: with scattered latencies some models take longer,
and the last calls of a model are not four at once. The benchmark draws latencies to compute the
rate of a runner that costs nothing, and prints it first. With 400 runs of a model and scattered
latencies it is less than 98 % of the ideal.

The latencies scatter by up to 60 ms around 200 ms; for comparison they are also all equal. Equal
latencies keep 100 calls in step: the work of each round comes at one instant and delays every call.
Real models do not behave so.
"""

from __future__ import annotations

import asyncio
import heapq
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from socratic_bench.adapters.sql.store import SqlStore
from socratic_bench.adapters.system.clock import SystemClock
from socratic_bench.domain.experiment.manifest import Experiment, Limits, Manifest, TutorModel
from socratic_bench.domain.scenario import Scenario
from socratic_bench.providers.endpoints.endpoint import ANYWHERE
from socratic_cli.embedded import Benchmark
from socratic_runner.models.registry import open_client

RUNS = 400
MODELS = 25
IN_FLIGHT = 4
LATENCY_MS = 200
SCATTER_MS = 60
DRAWN = 20
"""How often the latencies of a whole benchmark are drawn."""

IDEAL = MODELS * IN_FLIGHT * 1000 / LATENCY_MS
"""Runs a second."""


@contextmanager
def endpoints() -> Iterator[str]:
    """The address of the endpoints."""
    command = [sys.executable, "-m", "tests.benchmarks.endpoint_server"]
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

    def model(number: int) -> TutorModel:
        path = "hang" if number < hanging else latency
        return TutorModel(
            id=f"openai-compatible/model-{number:02}",
            base_url=f"{base_url}/{path}/model-{number:02}/v1",
            options={"stream": stream},
            limits=Limits(concurrency=IN_FLIGHT, timeout_seconds=600),
        )

    manifest = Manifest(
        models=tuple(model(number) for number in range(MODELS)),
        scenarios=(Scenario(id="one", dimension="ambiguous", prompt="Where do I begin?"),),
        repeats=runs,
    )
    return Experiment(manifest=manifest, created_at=SystemClock().now())


class Rate(NamedTuple):
    """Runs a second of the models that answer."""

    whole: float
    """From the start until all are in their cells."""

    steady: float
    """Without the first and the last fifth of the runs."""


async def rate(planned: Experiment, *, hanging: int = 0) -> Rate:
    """How fast the runs of the models that answer come into their cells."""
    answering = (MODELS - hanging) * planned.manifest.repeats
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
            return Rate(answering / seen[-1][0], _steady(seen, answering))
        finally:
            executing.cancel()
            await asyncio.wait([executing])
            await store.close()


def _steady(seen: list[tuple[float, int]], runs: int) -> float:
    """Runs a second between a fifth and four fifths of `runs`, by what was seen of them when."""
    since, first = next(each for each in seen if each[1] >= runs / 5)
    until, last = next(each for each in seen if each[1] >= runs * 4 / 5)
    return (last - first) / (until - since)


def possible(runs: int, *, scatter: bool) -> float:
    """Return the mean rate, by drawn latencies, of a runner whose own work takes no time.

    The first call to each model is alone, as `docs/design/limits.md` says.
    """
    drawing = random.Random(1)

    def latency() -> float:
        return (LATENCY_MS + drawing.uniform(-1, 1) * SCATTER_MS * scatter) / 1000

    def seconds() -> float:
        """Return the time until a model's runs are over."""
        ends = [latency()] * IN_FLIGHT
        for _ in range(runs - 1):
            heapq.heapreplace(ends, ends[0] + latency())
        return max(ends)

    times = [max(seconds() for _ in range(MODELS)) for _ in range(DRAWN)]
    return MODELS * runs / statistics.mean(times)


async def measure(runs: int) -> None:
    """Print what is possible, and a line for whole replies and one for streamed ones."""
    print(
        f"without any cost of the runner, {runs} runs of a model: "
        f"{possible(runs, scatter=True) / IDEAL:.1%} of the ideal, and with latencies all alike "
        f"{possible(runs, scatter=False) / IDEAL:.1%}"
    )
    with endpoints() as base_url:
        for stream in (False, True):
            scattered = await rate(experiment(base_url, runs, stream=stream, hanging=0))
            others = await rate(experiment(base_url, runs, stream=stream, hanging=1), hanging=1)
            alike = await rate(experiment(base_url, runs, stream=stream, hanging=0, scatter=False))
            kept = others.whole / (scattered.whole * (MODELS - 1) / MODELS)
            print(
                f"{MODELS} endpoints of {LATENCY_MS} ms, {IN_FLIGHT} in flight each, "
                f"{'streamed' if stream else 'whole'}: {_told(scattered)}; with one hanging the "
                f"others do {kept:.1%} of what they did; with latencies all alike {_told(alike)}"
            )


def _told(measured: Rate) -> str:
    return (
        f"{measured.whole:.0f} runs/s, {measured.whole / IDEAL:.1%} of the ideal, and "
        f"{measured.steady / IDEAL:.1%} without start and end"
    )


def main(runs: int = RUNS) -> None:
    """Measure with so many runs of each model."""
    asyncio.run(measure(runs))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
