"""`python -m tests.simulation.chaos`: many seeds, one seed with its trace, or a script."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from tests.simulation.chaos.run import Outcome, run
from tests.simulation.chaos.schedule import Schedule, shrunk


@dataclass
class Totals:
    """The sums of many runs."""

    runs: int = 0
    failed: int = 0
    hours: float = 0.0
    cpu: float = 0.0
    slowest: float = 0.0
    """Seconds from the last repair to the end, at most."""

    def add(self, outcome: Outcome) -> None:
        self.runs += 1
        self.failed += bool(outcome.broken)
        self.hours += outcome.hours
        self.cpu += outcome.cpu
        self.slowest = max(self.slowest, outcome.healing)

    def __str__(self) -> str:
        return (
            f"{self.runs} seeds, {self.failed} failed: {self.hours:,.0f} simulated hours in "
            f"{self.cpu:.1f} s of CPU, {self.cpu / max(self.runs, 1) * 1000:.0f} ms a seed, "
            f"{self.hours / max(self.cpu, 1e-9):,.1f} hours per second; "
            f"complete {self.slowest:,.0f} s after the last fault at the latest"
        )


def of_seed(seed: int) -> Outcome:
    return run(Schedule.drawn(seed))


def outcomes(seeds: Sequence[int], processes: int) -> Iterator[Outcome]:
    """Yield the outcome of each seed, in order."""
    if processes == 1:
        yield from map(of_seed, seeds)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(of_seed, seeds, chunksize=8)


def report(outcome: Outcome) -> str:
    """Return why a run failed, and the shortest script that fails for the same reason."""
    names = {name for name, _ in outcome.broken}

    def fails(schedule: Schedule) -> bool:
        return bool(names & {name for name, _ in run(schedule).broken})

    shortest = shrunk(outcome.schedule, fails)
    reasons = "\n".join(f"  {name}: {reason}" for name, reason in run(shortest).broken)
    return f"seed {outcome.schedule.seed} failed:\n{reasons}\n\n{shortest.script()}"


def replay(schedule: Schedule) -> None:
    """Carry a schedule out and print all that happens. Exits with 1 if an invariant breaks."""
    outcome = run(schedule, trace=True)
    print("\n".join(outcome.trace))
    for name, reason in outcome.broken:
        print(f"BROKEN {name}: {reason}")
    sys.exit(bool(outcome.broken))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.chaos", description=__doc__)
    parser.add_argument(
        "--seeds", default="0:200", help="the first seed and the one after the last"
    )
    parser.add_argument("--seed", type=int, help="one seed alone")
    parser.add_argument("--trace", action="store_true", help="with --seed: print what happens")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args(arguments)
    if given.seed is not None and given.trace:
        replay(Schedule.drawn(given.seed))
    first, _, end = given.seeds.partition(":")
    seeds = range(int(first), int(end)) if given.seed is None else range(given.seed, given.seed + 1)
    totals = Totals()
    for outcome in _told(outcomes(seeds, given.processes if len(seeds) > 1 else 1), totals):
        print(report(outcome), flush=True)
    print(totals)
    return bool(totals.failed)


def _told(all_of_them: Iterable[Outcome], totals: Totals) -> Iterator[Outcome]:
    """Yield the failed runs; count all, and say now and then how far it is."""
    for outcome in all_of_them:
        totals.add(outcome)
        if totals.runs % 1_000 == 0:
            print(totals, flush=True)
        if outcome.broken:
            yield outcome
