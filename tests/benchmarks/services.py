"""Runs per second of separate services on RabbitMQ and PostgreSQL, beside bare pipelines.

    python -m tests.benchmarks.services [RUNS]

Ours: a runner, a judge and a curator, one process each, and this one plans; reference tutors at
zero latency; every stage, every response stored. Then with a second judge and a second curator.
Before and after each, the bare pipeline of `bare_pipelines`, which stores nothing: a ratio is to
the mean of the two. FastStream is measured once, first.
"""

from __future__ import annotations

import asyncio
import sys
import time

from yarl import URL

from tests.benchmarks import bare_pipelines
from tests.benchmarks.running_services import experiment_of, plan, services, until_done
from tests.servers import rabbitmq

RUNS = 20_000
ROUNDS = 3
TUTORS = ("reference/socratic", "reference/lecturer", "reference/hedger", "reference/drifter")


async def throughput(runs: int, **processes: int) -> float:
    """Runs per second through all stages, with as many processes of each service."""
    experiment = experiment_of(TUTORS, runs)
    async with services(**processes) as (broker, store):
        started = time.perf_counter()
        await plan(experiment, broker, store)
        await until_done(experiment, store)
        seconds = time.perf_counter() - started
        progress = await store.progress(experiment.experiment_id)
        calls = await store.calls(experiment.experiment_id)
        assert progress.failed == 0
        assert calls.calls == progress.planned
    return progress.planned / seconds


async def measure(runs: int) -> None:
    """Print a line for each."""
    server = str(URL(await rabbitmq.new_namespace()).without_query_params("namespace"))
    other = await bare_pipelines.faststream(server, runs // 2)
    print(f"FastStream, three hops, no store:        {other:>6,.0f} runs/s", flush=True)
    before = await _bare(server, runs // 2)
    for label, processes in (
        *[("runner, judge, curator", {"runner": 1, "judge": 1, "curator": 1})] * ROUNDS,
        ("with two judges", {"runner": 1, "judge": 2, "curator": 1}),
        ("with two curators", {"runner": 1, "judge": 1, "curator": 2}),
    ):
        ours = await throughput(runs, **processes)
        after = await _bare(server, runs // 2)
        ratio = ours * 2 / (before + after)
        print(f"{label + ':':<40} {ours:>6,.0f} runs/s, {ratio:.2f} x bare", flush=True)
        before = after


async def _bare(server: str, runs: int) -> float:
    rate = await bare_pipelines.bare(server, runs)
    print(f"bare aio-pika, three hops, no store:     {rate:>6,.0f} runs/s", flush=True)
    return rate


def main(runs: int = RUNS) -> None:
    """Measure everything with so many runs."""
    asyncio.run(measure(runs))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
