"""The time until a run is visible in the aggregates, on RabbitMQ and PostgreSQL.

    python -m tests.benchmarks.visible_latency [RUNS_PER_SECOND] [SECONDS]

The benchmark requests runs at a steady pace and hears the curator announce the aggregate's
progress. It measures the whole way of a run: from the request through runner, judge and curator to
the aggregate, and to the news of it. It counts runs instead of following them: it takes the n-th
done run for the n-th requested one. It asks the store for nothing: two hundred questions a second
took the services a part of their cores.
"""

from __future__ import annotations

import asyncio
import sys
import time
from itertools import islice
from statistics import quantiles

from socratic_bench.adapters.brokers.rabbitmq.broker import RabbitMQBroker
from socratic_bench.adapters.clock import SystemClock
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.events.codec import event_of, to_message
from socratic_bench.events.event_types import AGGREGATE_UPDATED, AggregateUpdated, RunRequested
from socratic_bench.ports.broker import Listener
from tests.benchmarks.running_services import PATIENCE, experiment_of, services

TUTORS = ("reference/socratic", "reference/lecturer", "reference/hedger", "reference/drifter")
TICK = 0.05
"""Seconds between two requests, each for a few runs."""


async def request(
    experiment: Experiment, broker: RabbitMQBroker, rate: int, requested_at: list[float]
) -> None:
    """Request all runs at a steady pace."""
    clock, runs = SystemClock(), experiment.runs()
    begun = time.perf_counter()
    ticks = 0
    while batch := list(islice(runs, round(rate * TICK))):
        events = [RunRequested.of(run, source="benchmark", time=clock.now()) for run in batch]
        requested_at += [time.perf_counter()] * len(batch)
        await broker.publish([to_message(event) for event in events])
        ticks += 1
        await asyncio.sleep(max(0.0, begun + ticks * TICK - time.perf_counter()))


async def watch(experiment: Experiment, news: Listener, done_at: list[float]) -> None:
    """Note when each run came to be done."""
    async with asyncio.timeout(PATIENCE):
        async for message in news:
            event = event_of(message)
            assert isinstance(event, AggregateUpdated)
            done_at += [time.perf_counter()] * (event.data.done - len(done_at))
            if len(done_at) == experiment.manifest.planned_runs:
                return


async def measure(rate: int, seconds: int) -> None:
    """Print one line."""
    experiment = experiment_of(TUTORS, rate * seconds)
    requested_at: list[float] = []
    done_at: list[float] = []
    async with services(runner=1, judge=1, curator=1) as (broker, store):
        await store.register(experiment)
        async with broker.listen(AGGREGATE_UPDATED) as news, asyncio.TaskGroup() as tasks:
            tasks.create_task(request(experiment, broker, rate, requested_at))
            tasks.create_task(watch(experiment, news, done_at))
    latencies = [done - asked for asked, done in zip(requested_at, done_at, strict=True)]
    warm = latencies[rate:]
    half, *_ = quantiles(warm, n=2)
    *_, p99 = quantiles(warm, n=100)
    print(
        f"{rate} runs/s for {seconds} s, from request to aggregate: median {half * 1000:.0f} ms, "
        f"99th percentile {p99 * 1000:.0f} ms, longest {max(warm) * 1000:.0f} ms"
    )


def main(rate: int = 500, seconds: int = 20) -> None:
    """Measure at so many runs per second."""
    asyncio.run(measure(rate, seconds))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
