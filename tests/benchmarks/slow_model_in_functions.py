"""The delay that one slow model causes to 24 others in functions, with at most 10 at a time.

    python -m tests.benchmarks.slow_model_in_functions [RUNS]

Ten threads call the runner's function with a message each from the emulator's SQS, as Lambda does.
The emulator has no fair queues: the slow model's messages come in their turn. The 24 tutors answer
after 1.5 s and have RUNS runs each, the slow one after 15 s; the time is that of the 24.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial

from botocore.session import get_session

from socratic_bench.adapters.brokers.sqs.broker import SqsBroker
from socratic_bench.adapters.clock import SystemClock
from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.consuming.queues import RUNNER_RUN_REQUESTED, WORK_QUEUES
from socratic_bench.consuming.worker import Worker
from socratic_bench.domain.experiment.manifest import Experiment, Manifest, TutorModel
from socratic_bench.events.codec import Event, Message, to_message
from socratic_bench.hosting.functions.queue_function import QueueFunction, QueueWork
from socratic_bench.planning.config_file.scenario_selection import load_pack
from socratic_bench.planning.plan import resume
from socratic_bench.service_settings import load_settings
from socratic_runner.bootstrap import runner_dispatcher, unwatched
from socratic_runner.conversations.call_outcomes import UNOBSERVED
from socratic_runner.entrypoints.lambda_function import MORE
from socratic_runner.models.registry import open_client
from socratic_runner.settings import RunnerSettings
from socratic_runner.troubles import Troubles, tell_the_log
from tests.aws.records import event, poisoned, record
from tests.servers import aws_emulator, sqs

CONCURRENCY = 10
REPETITIONS = 2
RUNS = 45
QUICK_MS, SLOW_MS = 1_500, 15_000
SLOW = "reference/socratic@slow"
ARCHETYPES = ("socratic", "lecturer", "hedger", "drifter")
QUICK = tuple(f"reference/{name}@{number}" for name in ARCHETYPES for number in range(1, 7))


class Context:
    """What Lambda tells of an invocation."""

    aws_request_id = "benchmark"

    def get_remaining_time_in_millis(self) -> int:
        return 300_000


class Published:
    """Counts what the functions publish of the quick models."""

    def __init__(self, planned: int) -> None:
        self._left = planned
        self._counting = threading.Lock()
        self.done = threading.Event()

    async def publish(self, messages: Sequence[Message]) -> None:
        with self._counting:
            self._left -= sum(each.group != SLOW for each in messages)
            if self._left <= 0:
                self.done.set()


def experiment_of(runs: int, *, slow_beside: bool) -> Experiment:
    """An experiment of the 24, with the slow one beside them or alone."""
    scenarios = load_pack()
    latencies = dict.fromkeys(QUICK, QUICK_MS) | ({SLOW: SLOW_MS} if slow_beside else {})
    models = tuple(TutorModel(id=id_, options={"latency_ms": ms}) for id_, ms in latencies.items())
    repeats = max(1, runs // len(scenarios))
    manifest = Manifest(models=models, scenarios=scenarios, repeats=repeats)
    return Experiment(manifest=manifest, created_at=SystemClock().now())


def runner_function(
    url: str,
    experiment: Experiment,
    published: Published,
) -> QueueFunction:
    """The runner's function in an execution environment of its own, with a store in memory."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Mapping[str, QueueWork]]:
        broker, store = SqsBroker(url, poll_seconds=1), MemoryStore()
        await broker.declare(WORK_QUEUES)
        await store.prepare()
        await store.register(experiment)
        async with runner_dispatcher(
            published.publish,
            store,
            SystemClock(),
            open_client,
            load_settings(RunnerSettings),
            owner="function",
            limits=store,
            observer=UNOBSERVED,
            troubles=Troubles(UNOBSERVED, tell_the_log),
            watch=unwatched,
        ) as dispatcher:
            more = partial(Worker, broker, RUNNER_RUN_REQUESTED, dispatcher, MORE)
            records = partial(broker.records, RUNNER_RUN_REQUESTED.name)
            work = QueueWork(records, dispatcher, more=more)
            yield {RUNNER_RUN_REQUESTED.name: work}

    return QueueFunction("runner", opened)


def invoke_until(
    ready: threading.Barrier, ended: threading.Event, url: str, function: QueueFunction
) -> None:
    """Call a function with a message after the other, as Lambda does in one environment."""
    client = get_session().create_client(
        "sqs", endpoint_url=aws_emulator.SERVER.address(), region_name=aws_emulator.REGION
    )
    name = f"{url.partition('?')[0].rpartition('/')[2]}-{RUNNER_RUN_REQUESTED.name}"
    queue = client.get_queue_url(QueueName=name)["QueueUrl"]
    # Not the time of cold starts: they are those of ten processes on AWS, and of one here.
    function(event([poisoned(RUNNER_RUN_REQUESTED.name)]), Context())
    ready.wait()
    while not ended.is_set():
        answer = client.receive_message(
            QueueUrl=queue,
            WaitTimeSeconds=1,
            VisibilityTimeout=300,
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        for message in answer.get("Messages", ()):
            if not function(event([record(message, name)]), Context())["batchItemFailures"]:
                client.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])


async def seconds_of_the_quick(runs: int, *, slow_beside: bool) -> float:
    """Seconds until the last response of the 24 is published."""
    experiment = experiment_of(runs, slow_beside=slow_beside)
    published = Published(
        len(QUICK) * experiment.manifest.planned_runs // len(experiment.manifest.models)
    )
    async with sqs.namespace() as url:
        broker, store = SqsBroker(url, poll_seconds=1), MemoryStore()
        await broker.declare(WORK_QUEUES)
        await store.prepare()

        async def request(events: Sequence[Event]) -> None:
            await broker.publish([to_message(event) for event in events])

        await resume(
            await store.register(experiment), experiment.runs(), store, request, clock=SystemClock()
        )
        await broker.close()
        ready = threading.Barrier(CONCURRENCY + 1)
        threads = [
            threading.Thread(
                target=invoke_until,
                args=(ready, published.done, url, runner_function(url, experiment, published)),
            )
            for _ in range(CONCURRENCY)
        ]
        for thread in threads:
            thread.start()
        await asyncio.to_thread(ready.wait)
        started = time.perf_counter()
        await asyncio.to_thread(published.done.wait)
        seconds = time.perf_counter() - started
        for thread in threads:
            await asyncio.to_thread(thread.join)
    return seconds


async def measure(runs: int) -> None:
    """Print a line of figures."""
    alone, beside = [], []
    for _ in range(REPETITIONS):
        alone.append(await seconds_of_the_quick(runs, slow_beside=False))
        beside.append(await seconds_of_the_quick(runs, slow_beside=True))
    print(
        f"24 quick models in {CONCURRENCY} functions, {runs} runs each: {min(alone):.2f} s alone, "
        f"{min(beside):.2f} s beside a slow one: {min(beside) / min(alone):.2f} x",
        flush=True,
    )


def main(runs: int = RUNS) -> None:
    """Measure with so many runs of each model."""
    os.environ.setdefault("SOCRATIC_LOG_LEVEL", "error")
    os.environ.update(aws_emulator.credentials())
    asyncio.run(measure(runs))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
