"""What a run costs in DynamoDB: requests, write units and read units, counted.

    python -m tests.benchmarks.aws [RUNS]

Each run of one turn is leased, recorded and folded, in batches of different sizes, over an emulator
that says what it would bill for writes. Reads, whose sizes it leaves out, count by the rules of
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import ceil
from typing import Any

from socratic_bench.adapters.stores.dynamodb.clients import aws_session
from socratic_bench.adapters.stores.dynamodb.items import decoded, size
from socratic_bench.adapters.stores.dynamodb.store import DynamoDBStore
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.run import Run
from socratic_bench.ports.stores.leases import Lease, LeaseKey
from tests.contract.store.facts import a_response, a_score, an_experiment
from tests.servers import dynamodb

RUNS = 450
BATCHES = (1, 10, 100)
READ_UNIT = 4096
"""Bytes that a consistent read of an item gets for one unit."""

TEXT = (
    "That sounds frustrating. What might have changed in the weeks before the numbers went down? "
    "If you could ask ten of the customers who left one question, what would it be, and which "
    "answer would surprise you? Perhaps it depends on who you built this for in the first place. "
)
"""A response of usual length, twice."""


class Bill:
    """Requests and units, by what they are for."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self.writes: Counter[str] = Counter()
        self.reads: Counter[str] = Counter()
        self.purpose = ""

    def watch(self) -> None:
        """Have every client that is made from now on ask for its bill."""
        session = aws_session()
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
                self.reads[self.purpose] += sum(read_units([item]) - 1 for item in found)
            case "GetItem":
                self.reads[self.purpose] += read_units([parsed.get("Item", {})])
            case "Query":
                self.reads[self.purpose] += read_units(parsed["Items"])
            case _:
                consumed = parsed.get("ConsumedCapacity", [])
                each_table = consumed if isinstance(consumed, list) else [consumed]
                self.writes[self.purpose] += sum(each["CapacityUnits"] for each in each_table)

    def line(self, purpose: str, runs: int) -> str:
        counts = (self.requests, self.writes, self.reads)
        requests, writes, reads = (each[purpose] / runs for each in counts)
        return f"{purpose:34} {requests:8.2f} {writes:8.2f} {reads:8.2f}"


def read_units(items: Sequence[Mapping[str, Any]]) -> int:
    """The units of reading these items together."""
    return max(1, ceil(sum(size(decoded(item)) for item in items) / READ_UNIT))


async def carry_out(store: DynamoDBStore, bill: Bill, planned: Experiment, batch: int) -> None:
    """Lease, record and fold every run of an experiment."""
    price = "priced" if planned.manifest.budget is not None else "free"
    name = f"{price}, batches of {batch}"
    for runs in in_batches(planned.runs(), batch):
        bill.purpose = f"{name}: lease"
        reserve = 50_000 if price == "priced" else 0
        leases = [
            Lease(LeaseKey(run.experiment_id, run.run_id, 1, "lease"), 60, reserve) for run in runs
        ]
        await store.take_leases(leases, "runner")
        bill.purpose = f"{name}: record"
        cost = 21_000 if price == "priced" else 0
        responses = [
            a_response(run, f"{TEXT * 2} ({run.run_id})", cost=cost).model_copy(
                update={"student_message": "My startup is not growing. What should I do?"}
            )
            for run in runs
        ]
        await store.record(responses, ["lease"] * len(runs))
        bill.purpose = f"{name}: fold"
        await store.fold([a_score(run) for run in runs], [])


def in_batches(runs: Iterator[Run], batch: int) -> Iterator[Sequence[Run]]:
    while some := list(islice(runs, batch)):
        yield some


async def measure(runs: int) -> None:
    bill = Bill()
    bill.watch()
    async with dynamodb.new_table() as url:
        store = DynamoDBStore.from_url(url)
        await store.prepare()
        print(f"{'a run, in DynamoDB':34} {'requests':>8} {'writes':>8} {'reads':>8}")
        planned = an_experiment()
        for budget in (None, 10**12):
            for batch in BATCHES:
                bill.purpose = "an experiment: register"
                planned = await store.register(
                    an_experiment(
                        models=25,
                        scenarios=15,
                        repeats=max(1, runs // 375),
                        budget=budget,
                        occasion=f"{budget} {batch}",
                    )
                )
                await carry_out(store, bill, planned, batch)
                for purpose in [each for each in bill.requests if f" {batch}:" in each]:
                    if purpose.startswith("priced" if budget else "free"):
                        print(bill.line(purpose, planned.manifest.planned_runs))
                bill.purpose = "an experiment: complete"
                await store.complete(planned.experiment_id, planned.created_at)
        bill.purpose = "looks: revision"
        await store.revision()
        bill.purpose = "looks: progress"
        await store.progress(planned.experiment_id)
        for purpose, times in (
            ("an experiment: register", 6),
            ("an experiment: complete", 6),
            ("looks: revision", 1),
            ("looks: progress", 1),
        ):
            print(bill.line(purpose, times))
        await store.close()


def main() -> None:
    asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else RUNS))


if __name__ == "__main__":
    main()
