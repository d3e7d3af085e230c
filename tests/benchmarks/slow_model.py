"""The delay that one slow model causes to 24 others, on RabbitMQ and PostgreSQL.

    python -m tests.benchmarks.slow_model [RUNS]

24 reference tutors that answer at once run alone first. Then they run behind one with a simulated
latency of 30 s that has as many runs queued already. The time is that of the 24.
"""

from __future__ import annotations

import asyncio
import sys
import time

from tests.benchmarks.running_services import experiment_of, plan, services, until_done

RUNS = 10_000
ARCHETYPES = ("socratic", "lecturer", "hedger", "drifter")
QUICK = tuple(f"reference/{name}@{number}" for name in ARCHETYPES for number in range(1, 7))


async def seconds_of_the_quick(runs: int, *, slow_beside: bool) -> float:
    """Seconds until the runs of the 24 are in their cells."""
    quick = experiment_of(QUICK, runs)
    async with services(runner=1, judge=1, curator=1) as (broker, store):
        if slow_beside:
            slow = experiment_of(("reference/socratic@slow",), runs, latency_ms=30_000)
            await plan(slow, broker, store)
        started = time.perf_counter()
        await plan(quick, broker, store)
        await until_done(quick, store)
        return time.perf_counter() - started


async def measure(runs: int) -> None:
    """Print one line."""
    alone, beside = [], []
    for _ in range(3):
        alone.append(await seconds_of_the_quick(runs, slow_beside=False))
        beside.append(await seconds_of_the_quick(runs, slow_beside=True))
    print(
        f"24 quick models, {runs:,} runs: {min(alone):.2f} s alone, {min(beside):.2f} s beside a "
        f"slow one with {runs:,} runs queued: {min(beside) / min(alone):.2f} x"
    )


def main(runs: int = RUNS) -> None:
    """Measure with so many runs."""
    asyncio.run(measure(runs))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
