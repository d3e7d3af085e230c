"""What a run costs on SQS and SNS: requests by operation, counted, and runs per second.

    python -m tests.benchmarks.sqs_requests [RUNS]

All services in one process, over an emulator and a store in memory, with tutors that answer at once
and with tutors that take a second. The more events there are at a time, the more share a request.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack

from socratic_bench.adapters.brokers.sqs.broker import SqsBroker
from socratic_bench.adapters.clock import SystemClock
from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.domain.experiment.manifest import Experiment, Manifest, TutorModel
from socratic_bench.events.codec import Event, to_message
from socratic_bench.planning.config_file.scenario_selection import load_pack
from socratic_bench.planning.plan import resume
from socratic_bench.ports.stores.store import Store
from socratic_bench.service_settings import load_settings
from socratic_curator.bootstrap import curator_workers
from socratic_curator.settings import CuratorSettings
from socratic_judge.bootstrap import judge_worker
from socratic_judge.settings import JudgeSettings
from socratic_runner.bootstrap import runner_dispatcher, runner_worker, unwatched
from socratic_runner.conversations.call_outcomes import UNOBSERVED
from socratic_runner.models.registry import open_client
from socratic_runner.settings import RunnerSettings
from socratic_runner.troubles import Troubles, tell_the_log
from tests.servers import sqs

TUTORS = ("socratic", "lecturer", "hedger", "drifter")
RUNS = 1_080
LATENCIES = (0, 1_000)
"""Milliseconds of a call."""


async def measure(runs: int, latency: int) -> str:
    """Carry out an experiment; returns a line of figures."""
    scenarios = load_pack()
    manifest = Manifest(
        models=tuple(
            TutorModel(id=f"reference/{tutor}", options={"latency_ms": latency}) for tutor in TUTORS
        ),
        scenarios=scenarios,
        repeats=max(1, runs // (len(TUTORS) * len(scenarios))),
    )
    clock = SystemClock()
    experiment = Experiment(manifest=manifest, created_at=clock.now())
    async with sqs.namespace() as url:
        broker = SqsBroker(url)
        try:
            await broker.declare(WORK_QUEUES, BROADCASTS)
            before = broker.requests
            store = MemoryStore()
            await store.prepare()
            seconds = await carry_out(experiment, broker, store, clock)
            made = {name: count - before.get(name, 0) for name, count in broker.requests.items()}
        finally:
            await broker.close()
    planned = manifest.planned_runs
    shown = ", ".join(
        f"{name} {count / planned:.3f}"
        for name, count in sorted(made.items(), key=lambda each: -each[1])
        if count
    )
    return (
        f"SQS, {planned:,} runs of {latency:,} ms: {planned / seconds:,.0f} runs/s, "
        f"{sum(made.values()) / planned:.2f} requests a run ({shown})"
    )


async def carry_out(
    experiment: Experiment, broker: SqsBroker, store: Store, clock: SystemClock
) -> float:
    """Plan and carry out an experiment with all services; returns the seconds it took."""
    experiment = await store.register(experiment)

    async def publish(events: Sequence[Event]) -> None:
        await broker.publish([to_message(event) for event in events])

    async with AsyncExitStack() as opened:
        settings = load_settings(RunnerSettings)
        dispatcher = await opened.enter_async_context(
            runner_dispatcher(
                broker.publish,
                store,
                clock,
                open_client,
                settings,
                owner="benchmark",
                limits=store,
                observer=UNOBSERVED,
                troubles=Troubles(UNOBSERVED, tell_the_log),
                watch=unwatched,
            )
        )
        workers = [
            runner_worker(broker, dispatcher, settings),
            judge_worker(broker, clock, load_settings(JudgeSettings)),
            *curator_workers(broker, store, clock, load_settings(CuratorSettings)),
        ]
        async with asyncio.TaskGroup() as tasks:
            for worker in workers:
                tasks.create_task(worker.run())
            started = time.perf_counter()
            await resume(
                experiment, experiment.runs(), store, publish, clock=clock, source="benchmark"
            )
            while (await store.experiment(experiment.experiment_id)).completed_at is None:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            seconds = time.perf_counter() - started
            for worker in workers:
                worker.drain()
    return seconds


def main(runs: int = RUNS) -> None:
    """Print a line for each latency."""
    os.environ.setdefault("SOCRATIC_LOG_LEVEL", "error")
    for latency in LATENCIES:
        print(asyncio.run(measure(runs, latency)), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
