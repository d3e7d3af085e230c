"""The pipeline over SQS, SNS and DynamoDB: runs per second, requests and units of a run, counted.

    python -m tests.benchmarks.aws_pipeline [RUNS]

All services in one process, over an emulator, with tutors that answer at once. The units count
planning, carrying out and the looks at the experiment until it is complete, all by their requests.
"""

from __future__ import annotations

import asyncio
import os
import sys

from socratic_bench.adapters.brokers.sqs.broker import SqsBroker
from socratic_bench.adapters.clock import SystemClock
from socratic_bench.adapters.stores.dynamodb.store import DynamoDBStore
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.domain.experiment.manifest import Experiment, Manifest, TutorModel
from socratic_bench.planning.config_file.scenario_selection import load_pack
from tests.benchmarks.aws import Bill
from tests.benchmarks.sqs_requests import TUTORS, carry_out
from tests.servers import dynamodb, sqs

RUNS = 1_080


async def measure(runs: int) -> str:
    """Carry out an experiment; returns a line of figures."""
    scenarios = load_pack()
    manifest = Manifest(
        models=tuple(TutorModel(id=f"reference/{tutor}") for tutor in TUTORS),
        scenarios=scenarios,
        repeats=max(1, runs // (len(TUTORS) * len(scenarios))),
    )
    clock = SystemClock()
    experiment = Experiment(manifest=manifest, created_at=clock.now())
    bill = Bill()
    bill.watch()
    async with dynamodb.new_table() as table, sqs.namespace() as namespace:
        store, broker = DynamoDBStore.from_url(table), SqsBroker(namespace)
        try:
            await store.prepare()
            await broker.declare(WORK_QUEUES, BROADCASTS)
            before = sum(broker.requests.values())
            bill.purpose = "pipeline"
            seconds = await carry_out(experiment, broker, store, clock)
            bill.purpose = "afterwards"
            messages = sum(broker.requests.values()) - before
        finally:
            await broker.close()
            await store.close()
    planned = manifest.planned_runs
    requests, writes, reads = (
        each["pipeline"] / planned for each in (bill.requests, bill.writes, bill.reads)
    )
    return (
        f"SQS and DynamoDB, {planned:,} runs: {planned / seconds:,.0f} runs/s; a run: "
        f"{messages / planned:.2f} requests to SQS and SNS, {requests:.2f} to DynamoDB, "
        f"{writes:.1f} write units, {reads:.1f} read units"
    )


def main(runs: int = RUNS) -> None:
    """Print a line of figures."""
    os.environ.setdefault("SOCRATIC_LOG_LEVEL", "error")
    print(asyncio.run(measure(runs)), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
