"""Separate services on RabbitMQ and PostgreSQL: their throughput, their latency, a slow model.

    python -m tests.benchmarks.services [throughput|latency|slow-model] [NUMBERS]

A runner, a judge and a curator are one process each; reference tutors answer at once.

`throughput [RUNS]` plans an experiment, and has every stage carried out and every response stored;
then with a second judge and a second curator. Before and after each, it runs a bare pipeline of the
same traffic: aio-pika, three hops, one message at a time, no store. A ratio is to the mean of the
two.

`latency [RUNS_PER_SECOND] [SECONDS]` requests runs at a steady pace and hears the curator announce
the aggregate's progress. It counts runs instead of following them: it takes the n-th done run for
the n-th requested one. It asks the store for nothing: two hundred questions a second took the
services a part of their cores.

`slow-model [RUNS]` has 24 tutors run alone first. Then they run behind one with a simulated latency
of 30 s that has as many runs queued already. The time is that of the 24.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import islice
from statistics import quantiles
from typing import Any
from uuid import uuid4

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage
from yarl import URL

from socratic_bench.adapters.brokers.rabbitmq.broker import RabbitMQBroker
from socratic_bench.adapters.clock import SystemClock
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.events.codec import event_of, to_message
from socratic_bench.events.event_types import AGGREGATE_UPDATED, AggregateUpdated, RunRequested
from socratic_bench.planning.plan import resume
from socratic_bench.ports.broker import Listener
from tests.benchmarks.embedded import ARCHETYPES, experiment_of
from tests.e2e.service_processes import ServiceProcess, start
from tests.servers import postgresql, rabbitmq

PATIENCE = 600.0
"""Seconds after which a benchmark has failed."""

QUICK = tuple(f"reference/{name}@{number}" for name in ARCHETYPES for number in range(1, 7))
ROUNDS = 3
TICK = 0.05
"""Seconds between two requests, each for a few runs."""


@asynccontextmanager
async def running(
    **processes: int,
) -> AsyncIterator[tuple[RabbitMQBroker, SqlStore, dict[str, ServiceProcess]]]:
    """As many processes of each service, ready, in a namespace and a database of their own.

    Yields their broker, their store and the last process of each service.
    """
    async with AsyncExitStack() as stack:
        broker_url = await stack.enter_async_context(rabbitmq.namespace())
        store_url = await stack.enter_async_context(postgresql.new_database())
        environment = {"SOCRATIC_BROKER_URL": broker_url, "SOCRATIC_STORE_URL": store_url}
        started: dict[str, ServiceProcess] = {}
        for kind in Counter(processes).elements():
            service = await start(kind, environment)
            stack.push_async_callback(service.close)
            await service.ready()
            started[kind] = service
        broker, store = RabbitMQBroker(broker_url), SqlStore.from_url(store_url)
        stack.push_async_callback(broker.close)
        stack.push_async_callback(store.close)
        await broker.declare(WORK_QUEUES, BROADCASTS)
        yield broker, store, started


async def plan(experiment: Experiment, broker: RabbitMQBroker, store: SqlStore) -> None:
    """Request every run of an experiment."""
    await store.register(experiment)
    await resume(
        experiment,
        experiment.runs(),
        store,
        lambda events: broker.publish([to_message(event) for event in events]),
        clock=SystemClock(),
    )


async def until_done(experiment: Experiment, store: SqlStore) -> None:
    """Wait until every run of an experiment is in its cells."""
    async with asyncio.timeout(PATIENCE):
        while (progress := await store.progress(experiment.experiment_id)).done < progress.planned:  # noqa: ASYNC110 - the store tells no event of it
            await asyncio.sleep(0.05)


class BarePipeline:
    """Three hops over RabbitMQ by aio-pika in one process, a message at a time, without a store.

    Quorum queues, persistent messages with publisher confirms, a prefetch of 200, and a response of
    about 2 KB.
    """

    PREFETCH = 200
    TEXT = "Which part of the problem would you like to look at first, and why that one? " * 26

    def __init__(self, publishing: AbstractChannel) -> None:
        self._publishing = publishing
        self._prefix = f"bench-{uuid4().hex[:8]}"
        self._hops: dict[str, Callable[[AbstractIncomingMessage], Awaitable[None]]] = {
            "requested": self._run,
            "recorded": self._judge,
            "scored": self._curate,
        }
        self._left = 0
        self._finished = asyncio.Event()

    async def rate(self, connection: aio_pika.abc.AbstractConnection, runs: int) -> float:
        """Return runs a second, from the first that is published to the last that is done."""
        async with AsyncExitStack() as stack:
            for hop, handle in self._hops.items():
                name = f"{self._prefix}.{hop}"
                await self._publishing.declare_queue(
                    name, durable=True, arguments={"x-queue-type": "quorum"}
                )
                stack.push_async_callback(self._publishing.queue_delete, name)
                channel = await connection.channel()
                stack.push_async_callback(channel.close)
                await channel.set_qos(prefetch_count=self.PREFETCH)
                await (await channel.get_queue(name, ensure=False)).consume(handle)
            self._left, started = runs, time.perf_counter()
            for first in range(0, runs, self.PREFETCH):
                numbers = range(first, min(first + self.PREFETCH, runs))
                await asyncio.gather(*(self._publish("requested", {"run": n}) for n in numbers))
            async with asyncio.timeout(PATIENCE):
                await self._finished.wait()
            return runs / (time.perf_counter() - started)

    async def _publish(self, hop: str, body: dict[str, Any]) -> None:
        message = aio_pika.Message(
            json.dumps(body).encode(), delivery_mode=aio_pika.DeliveryMode.PERSISTENT
        )
        name = f"{self._prefix}.{hop}"
        await self._publishing.default_exchange.publish(message, routing_key=name)

    async def _run(self, message: AbstractIncomingMessage) -> None:
        await self._publish("recorded", {**json.loads(message.body), "text": self.TEXT})
        await message.ack()

    async def _judge(self, message: AbstractIncomingMessage) -> None:
        recorded = json.loads(message.body)
        asks = float(recorded["text"].endswith("?"))
        await self._publish("scored", {"run": recorded["run"], "interrogative": asks})
        await message.ack()

    async def _curate(self, message: AbstractIncomingMessage) -> None:
        json.loads(message.body)
        await message.ack()
        self._left -= 1
        if not self._left:
            self._finished.set()


async def throughput(runs: int = 20_000) -> None:
    """Print a line for each number of processes, and for the bare pipeline between them."""
    server = str(URL(await rabbitmq.new_namespace()).without_query_params("namespace"))
    before = await _bare_rate(server, runs // 2)
    for label, processes in (
        *[("runner, judge, curator", {"runner": 1, "judge": 1, "curator": 1})] * ROUNDS,
        ("with two judges", {"runner": 1, "judge": 2, "curator": 1}),
        ("with two curators", {"runner": 1, "judge": 1, "curator": 2}),
    ):
        ours = await _rate(runs, **processes)
        after = await _bare_rate(server, runs // 2)
        ratio = ours * 2 / (before + after)
        print(f"{label + ':':<40} {ours:>6,.0f} runs/s, {ratio:.2f} x bare", flush=True)
        before = after


async def _rate(runs: int, **processes: int) -> float:
    """Runs per second through all stages, with as many processes of each service."""
    experiment = experiment_of(runs)
    async with running(**processes) as (broker, store, _):
        started = time.perf_counter()
        await plan(experiment, broker, store)
        await until_done(experiment, store)
        seconds = time.perf_counter() - started
        progress = await store.progress(experiment.experiment_id)
        calls = await store.calls(experiment.experiment_id)
        assert progress.failed == 0
        assert calls.calls == progress.planned
    return progress.planned / seconds


async def _bare_rate(server: str, runs: int) -> float:
    async with await aio_pika.connect(server) as connection, connection.channel() as publishing:
        rate = await BarePipeline(publishing).rate(connection, runs)
    print(f"bare aio-pika, three hops, no store:     {rate:>6,.0f} runs/s", flush=True)
    return rate


async def latency(rate: int = 500, seconds: int = 20) -> None:
    """Print a line: the time from the request of a run to the news of its aggregate."""
    experiment = experiment_of(rate * seconds)
    requested_at: list[float] = []
    done_at: list[float] = []
    async with running(runner=1, judge=1, curator=1) as (broker, store, _):
        await store.register(experiment)
        async with broker.listen(AGGREGATE_UPDATED) as news, asyncio.TaskGroup() as tasks:
            tasks.create_task(request(experiment, broker, rate, requested_at))
            tasks.create_task(_watch(experiment, news, done_at))
    taken = [done - asked for asked, done in zip(requested_at, done_at, strict=True)]
    print(f"{rate} runs/s for {seconds} s, from request to aggregate: {spread(taken[rate:])}")


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


async def _watch(experiment: Experiment, news: Listener, done_at: list[float]) -> None:
    """Note when each run came to be done."""
    async with asyncio.timeout(PATIENCE):
        async for message in news:
            event = event_of(message)
            assert isinstance(event, AggregateUpdated)
            done_at += [time.perf_counter()] * (event.data.done - len(done_at))
            if len(done_at) == experiment.manifest.planned_runs:
                return


def spread(seconds: Sequence[float]) -> str:
    """Say the median, the 99th percentile and the longest of some times."""
    percentiles = quantiles(seconds, n=100)
    return (
        f"median {percentiles[49] * 1000:.0f} ms, 99th percentile {percentiles[98] * 1000:.0f} ms, "
        f"longest {max(seconds) * 1000:.0f} ms"
    )


async def slow_model(runs: int = 10_000) -> None:
    """Print a line: the delay that one slow model causes to 24 others."""
    alone, beside = [], []
    for _ in range(ROUNDS):
        alone.append(await _seconds_of_the_quick(runs, slow_beside=False))
        beside.append(await _seconds_of_the_quick(runs, slow_beside=True))
    print(
        f"24 quick models, {runs:,} runs: {min(alone):.2f} s alone, {min(beside):.2f} s beside a "
        f"slow one with {runs:,} runs queued: {min(beside) / min(alone):.2f} x"
    )


async def _seconds_of_the_quick(runs: int, *, slow_beside: bool) -> float:
    """Seconds until the runs of the 24 are in their cells."""
    quick = experiment_of(runs, QUICK)
    async with running(runner=1, judge=1, curator=1) as (broker, store, _):
        if slow_beside:
            slow = experiment_of(runs, ("reference/socratic@slow",), latency_ms=30_000)
            await plan(slow, broker, store)
        started = time.perf_counter()
        await plan(quick, broker, store)
        await until_done(quick, store)
        return time.perf_counter() - started


MEASUREMENTS = {"throughput": throughput, "latency": latency, "slow-model": slow_model}


def main(name: str | None = None, *numbers: str) -> None:
    """Take one measurement, or all of them."""
    if name not in (None, *MEASUREMENTS):
        sys.exit(__doc__)
    for chosen in MEASUREMENTS if name is None else (name,):
        asyncio.run(MEASUREMENTS[chosen](*map(int, numbers)))


if __name__ == "__main__":
    main(*sys.argv[1:])
