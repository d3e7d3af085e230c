"""What benchmarks and pages cost on SQS, SNS and DynamoDB, counted over an emulator.

    python -m tests.benchmarks.aws [pipeline [RUNS]|units [RUNS]|pages]

`pipeline` carries out an experiment with all services in one process, by tutors that answer at once
and by tutors that take a second: the more events there are at a time, the more share a request. It
counts planning, carrying out and the looks at the experiment until it is complete.

`units` leases, records and folds runs of one turn in the store alone, in batches of different
sizes, with and without a price.

`pages` has the API answer everything that the pages ask for, over two stores, each with one
experiment of 25 models and 15 scenarios beside two small ones. Where both columns show the same
figures, a page of thousands of runs costs no more than one of a thousand.

The emulator says what it would bill for writes. Reads, whose sizes it leaves out, count by
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from itertools import islice
from math import ceil
from typing import Any

import httpx

from socratic_bench.adapters.brokers.sqs.broker import SqsBroker
from socratic_bench.adapters.clock import SystemClock
from socratic_bench.adapters.stores.dynamodb.clients import aws_session
from socratic_bench.adapters.stores.dynamodb.items import decoded, size
from socratic_bench.adapters.stores.dynamodb.store import DynamoDBStore
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.events.codec import Event, to_message
from socratic_bench.planning.plan import resume
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
from tests.benchmarks.api import requests_of
from tests.benchmarks.embedded import experiment_of
from tests.benchmarks.filled_stores import Size, build_api, experiments_of, fill
from tests.contract.store.facts import a_response, a_score, an_experiment, claim_of
from tests.servers import dynamodb, sqs

LATENCIES_MS = (0, 1_000)
BATCHES = (1, 10, 100)
SIZES = (Size(1_875, 3), Size(5_625, 3))
READ_UNIT = 4096
"""Bytes that a consistent read of an item gets for one unit."""

TEXT = (
    "That sounds frustrating. What might have changed in the weeks before the numbers went down? "
    "If you could ask ten of the customers who left one question, what would it be, and which "
    "answer would surprise you? Perhaps it depends on who you built this for in the first place. "
)
"""A response of usual length, twice."""


class Bill:
    """Requests to DynamoDB and their units, by what they are for."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self.writes: Counter[str] = Counter()
        self.reads: Counter[str] = Counter()
        self.purpose = ""
        session = aws_session()  # each client that is made from now on asks for its bill
        session.register("before-parameter-build.dynamodb", self._ask)
        session.register("after-call.dynamodb", self._count)

    def _ask(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        if "ReturnConsumedCapacity" in model.input_shape.members:
            params["ReturnConsumedCapacity"] = "TOTAL"
        if model.name == "BatchGetItem":  # a missing item costs a unit, too
            keys = sum(len(asked["Keys"]) for asked in params["RequestItems"].values())
            self.reads[self.purpose] += keys

    def _count(self, parsed: Mapping[str, Any], model: Any, **_: Any) -> None:
        self.requests[self.purpose] += 1
        match model.name:
            case "BatchGetItem":
                found = [item for items in parsed["Responses"].values() for item in items]
                self.reads[self.purpose] += sum(_read_units([item]) - 1 for item in found)
            case "GetItem":
                self.reads[self.purpose] += _read_units([parsed.get("Item", {})])
            case "Query":
                self.reads[self.purpose] += _read_units(parsed["Items"])
            case _:
                consumed = parsed.get("ConsumedCapacity", [])
                each_table = consumed if isinstance(consumed, list) else [consumed]
                self.writes[self.purpose] += sum(each["CapacityUnits"] for each in each_table)

    def of(self, purpose: str, times: int = 1) -> tuple[float, float, float]:
        """Return the requests, write units and read units of one of so many times."""
        requests, writes, reads = (
            counter[purpose] / times for counter in (self.requests, self.writes, self.reads)
        )
        return requests, writes, reads


def _read_units(items: Sequence[Mapping[str, Any]]) -> int:
    """The units of reading these items together."""
    return max(1, ceil(sum(size(decoded(item)) for item in items) / READ_UNIT))


async def pipeline(bill: Bill, runs: int = 1_080) -> None:
    """Print a line for each latency: runs per second, and the requests and units of a run."""
    for latency in LATENCIES_MS:
        experiment = experiment_of(runs, latency_ms=latency)
        planned = experiment.manifest.planned_runs
        async with dynamodb.new_table() as table, sqs.namespace() as namespace:
            store, broker = DynamoDBStore.from_url(table), SqsBroker(namespace)
            try:
                await store.prepare()
                await broker.declare(WORK_QUEUES, BROADCASTS)
                before = Counter(broker.requests)
                bill.purpose = f"pipeline, {latency} ms"
                seconds = await _carry_out(experiment, broker, store)
                made = Counter(broker.requests) - before
                bill.purpose = "afterwards"
            finally:
                await broker.close()
                await store.close()
        requests, writes, reads = bill.of(f"pipeline, {latency} ms", planned)
        each = ", ".join(f"{name} {count / planned:.3f}" for name, count in made.most_common())
        print(
            f"{planned:,} runs of {latency:,} ms: {planned / seconds:,.0f} runs/s; a run: "
            f"{made.total() / planned:.2f} requests to SQS and SNS ({each}), {requests:.1f} to "
            f"DynamoDB, {writes:.1f} write units, {reads:.1f} read units",
            flush=True,
        )


async def _carry_out(experiment: Experiment, broker: SqsBroker, store: DynamoDBStore) -> float:
    """Plan and carry out an experiment with all services; returns the seconds it took."""
    clock = SystemClock()
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


async def units(bill: Bill, runs: int = 450) -> None:
    """Print a line for each step of a run and each size of batches, and for an experiment."""
    print(f"{'a run, in DynamoDB':34} {'requests':>8} {'writes':>8} {'reads':>8}")
    async with dynamodb.new_table() as url:
        store = DynamoDBStore.from_url(url)
        await store.prepare()
        for budget in (None, 10**12):
            for batch in BATCHES:
                bill.purpose = "an experiment: register"
                experiment = await store.register(
                    an_experiment(
                        models=25,
                        scenarios=15,
                        repeats=max(1, runs // 375),
                        budget=budget,
                        occasion=f"{budget} {batch}",
                    )
                )
                name = f"{'priced' if budget else 'free'}, batches of {batch}"
                await _write_runs(store, bill, experiment, batch, name)
                for step in ("lease", "record", "fold"):
                    _print_units(bill, f"{name}: {step}", experiment.manifest.planned_runs)
                bill.purpose = "an experiment: complete"
                await store.complete(experiment.experiment_id, experiment.created_at)
                bill.purpose = "a look: revision"
                await store.revision()
                bill.purpose = "a look: progress"
                await store.progress(experiment.experiment_id)
        for purpose in (
            "an experiment: register",
            "an experiment: complete",
            "a look: revision",
            "a look: progress",
        ):
            _print_units(bill, purpose, 2 * len(BATCHES))
        await store.close()


async def _write_runs(
    store: DynamoDBStore, bill: Bill, experiment: Experiment, batch: int, name: str
) -> None:
    """Lease, record and fold every run of an experiment."""
    has_price = experiment.manifest.budget is not None
    reserved, cost = (50_000, 21_000) if has_price else (0, 0)
    remaining = experiment.runs()
    while runs := list(islice(remaining, batch)):
        bill.purpose = f"{name}: lease"
        leases = [claim_of(run, "lease", reserved) for run in runs]
        await store.take_leases(leases, "runner")
        bill.purpose = f"{name}: record"
        responses = [a_response(run, f"{TEXT * 2} ({run.run_id})", cost=cost) for run in runs]
        await store.record(responses, ["lease"] * len(runs))
        bill.purpose = f"{name}: fold"
        await store.fold([a_score(run) for run in runs], [])


def _print_units(bill: Bill, purpose: str, times: int) -> None:
    requests, writes, reads = bill.of(purpose, times)
    print(f"{purpose:34} {requests:8.2f} {writes:8.2f} {reads:8.2f}", flush=True)


async def pages(bill: Bill) -> None:
    """Print a line for each request of the pages, with a pair of columns for each store."""
    table: dict[str, list[float]] = {}
    for store_size in SIZES:
        experiments = experiments_of(store_size)
        async with dynamodb.new_table() as url:
            store = DynamoDBStore.from_url(url)
            await store.prepare()
            bill.purpose = "filling"
            await fill(store, experiments)
            transport = httpx.ASGITransport(await build_api(store))
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                bill.purpose = "outlines, once"
                await client.get("/api/experiments")
                for name, path in requests_of(experiments).items():
                    bill.purpose = f"{store_size}: {name}"
                    answer = await client.get(path)
                    answer.raise_for_status()
                    requests, _, reads = bill.of(bill.purpose)
                    table.setdefault(name, []).extend((requests, reads))
            await store.close()
    heads = (f"{head}, {each.runs:,} runs" for each in SIZES for head in ("requests", "units"))
    print(f"{'a request of a page':34}", *(f"{head:>22}" for head in heads))
    for name, counts in table.items():
        print(f"{name:34}", *(f"{count:22.0f}" for count in counts))


MEASUREMENTS = {"pipeline": pipeline, "units": units, "pages": pages}


def main(name: str | None = None, *runs: str) -> None:
    """Take one measurement, or all of them."""
    if name not in (None, *MEASUREMENTS):
        sys.exit(__doc__)
    os.environ.setdefault("SOCRATIC_LOG_LEVEL", "error")
    bill = Bill()
    for chosen in MEASUREMENTS if name is None else (name,):
        asyncio.run(MEASUREMENTS[chosen](bill, *map(int, runs)))


if __name__ == "__main__":
    main(*sys.argv[1:])
