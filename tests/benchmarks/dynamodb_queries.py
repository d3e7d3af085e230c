"""What each request of the pages costs in DynamoDB: requests and read units, counted.

    python -m tests.benchmarks.dynamodb_queries

The API answers over an emulator, with one experiment of 25 models and 15 scenarios beside two small
ones, at two numbers of runs. A page of a thousand runs and one of several thousand cost the same
where the figures of both columns are the same. `aws` says how reads are counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import httpx

from socratic_api.bootstrap import build_app
from socratic_api.settings import ApiSettings
from socratic_bench.adapters.stores.dynamodb.store import DynamoDBStore
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.ports.stores.responses import NO_LEASE, RecordedFailure
from tests.benchmarks.aws import Bill
from tests.benchmarks.filled_stores import PENDING, outcomes
from tests.benchmarks.scale.endpoints import asked_of
from tests.benchmarks.scale.plans import Size, experiments_of
from tests.servers import dynamodb

SIZES = (Size(1_875, 3), Size(5_625, 3))
_BATCH = 100


async def fill(store: DynamoDBStore, experiment: Experiment, runs: int) -> None:
    """Carry out the first runs of an experiment by the store's own roles."""
    await store.register(experiment)
    found = list(outcomes(experiment, runs))
    for start in range(0, len(found), _BATCH):
        some = found[start : start + _BATCH]
        responses = [each.response for each in some if each.response is not None]
        failures = [each.failure for each in some if each.failure is not None]
        await store.record(responses, [NO_LEASE] * len(responses))
        await store.record_failures([RecordedFailure(failure, 0) for failure in failures])
        await store.fold([each.scored for each in some if each.scored is not None], failures)
    await store.complete(experiment.experiment_id, experiment.created_at)


async def measure(size: Size, bill: Bill) -> Sequence[str]:
    """Ask for everything that the pages ask for; returns the names of what was asked."""
    experiments = experiments_of(size)
    async with dynamodb.new_table() as url:
        store = DynamoDBStore.from_url(url)
        await store.prepare()
        bill.purpose = "filling"
        for place, experiment in enumerate(experiments):
            left = 0 if place else PENDING
            await fill(store, experiment, experiment.manifest.planned_runs - left)
        transport = httpx.ASGITransport(build_app(store, ApiSettings(freshness_ms=0)))
        names = []
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            bill.purpose = "outlines, once"
            await client.get("/api/experiments")
            for asked in asked_of(experiments):
                bill.purpose = f"{size}: {asked.name}"
                answer = await client.get(asked.path)
                answer.raise_for_status()
                names.append(asked.name)
        await store.close()
    return names


async def table() -> None:
    """Print one line for each request of the pages."""
    bill = Bill()
    bill.watch()
    names: Sequence[str] = ()
    for size in SIZES:
        names = await measure(size, bill)
    heads = (f"{head}, {size.runs:,} runs" for size in SIZES for head in ("requests", "units"))
    print(f"{'a request of a page':34}", *(f"{head:>22}" for head in heads))
    for name in names:
        counts = (
            counter[f"{size}: {name}"] for size in SIZES for counter in (bill.requests, bill.reads)
        )
        print(f"{name:34}", *(f"{count:22.0f}" for count in counts))


def main() -> None:
    asyncio.run(table())


if __name__ == "__main__":
    main()
