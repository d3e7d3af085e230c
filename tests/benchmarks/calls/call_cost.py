"""The processor time of one real call through all stages, beside that of a bare one.

    python -m tests.benchmarks.calls.call_cost [RUNS OF A MODEL] [ROUNDS]

The whole benchmark in one process, with SQLite, calls 25 endpoints over HTTP, and counts from its
registration to its last cell. Beside it, `bare_calls` makes the same calls. The two take turns, so
the ratio holds when the speed of the machine drifts.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.ports.stores.store import Store
from socratic_bench.providers.endpoints import ANYWHERE
from socratic_cli.embedded import Benchmark
from socratic_runner.models.registry import open_client
from tests.benchmarks.calls.bare_calls import bare_calls
from tests.benchmarks.calls.many_endpoints import endpoints, experiment

RUNS = 300
ROUNDS = 3


async def whole_benchmark(planned: Experiment) -> float:
    """Milliseconds of processor time for a call."""
    async with a_store() as store:
        begun = time.process_time()
        await store.register(planned)
        benchmark = Benchmark(
            planned, store, partial(open_client, endpoints=ANYWHERE), limits=store
        )
        await benchmark.execute()
        took = time.process_time() - begun
        progress = await store.progress(planned.experiment_id)
        assert progress.failed == 0, "a run that fails calls nobody"
        return took * 1e3 / progress.done


@asynccontextmanager
async def a_store() -> AsyncIterator[Store]:
    with tempfile.TemporaryDirectory() as folder:
        store = SqlStore.from_url(f"sqlite:///{folder}/benchmark.db")
        await store.prepare()
        try:
            yield store
        finally:
            await store.close()


async def measure(runs: int, rounds: int) -> None:
    """Print a line for whole replies, and one for streamed ones, beside whole bare calls."""
    ours: dict[bool, list[float]] = {False: [], True: []}
    bare: list[float] = []
    with endpoints() as base_url:
        for _ in range(rounds):
            for stream, costs in ours.items():
                costs.append(
                    await whole_benchmark(experiment(base_url, runs, stream=stream, hanging=0))
                )
            took = await bare_calls(experiment(base_url, runs, stream=False, hanging=0))
            bare.append(took.processor_seconds * 1e3 / took.calls)
    yardstick = statistics.median(bare)
    print(f"a bare call                  {yardstick:.3f} ms of processor time")
    for stream, costs in ours.items():
        cost = statistics.median(costs)
        how = "streamed" if stream else "whole"
        print(f"through all stages, {how:8} {cost:.3f} ms, {cost / yardstick:.2f} x")


def main(runs: int = RUNS, rounds: int = ROUNDS) -> None:
    """Measure with so many runs of each model, so many times."""
    asyncio.run(measure(runs, rounds))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
