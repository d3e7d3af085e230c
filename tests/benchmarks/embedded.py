"""Runs per second through all stages of the embedded pipeline, and its memory as runs grow.

    python -m tests.benchmarks.embedded [RUNS ...]

Reference tutors at zero latency, responses written to SQLite on disk with full durability. Each
size is measured in a fresh process.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from socratic_bench.adapters.clock import SystemClock
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.manifest import Experiment, Manifest, TutorModel
from socratic_bench.planning.config_file.scenario_selection import load_pack
from socratic_cli.embedded import Benchmark
from socratic_runner.models.registry import open_client

TUTORS = ("reference/socratic", "reference/lecturer", "reference/hedger", "reference/drifter")
SIZES = (1_000, 10_000, 100_000)


async def execute(runs: int, folder: Path) -> dict[str, float]:
    """Carry out about `runs` runs; returns runs, seconds and the peak memory in MB."""
    scenarios = load_pack()
    manifest = Manifest(
        models=tuple(TutorModel(id=tutor) for tutor in TUTORS),
        scenarios=scenarios,
        repeats=max(1, runs // (len(TUTORS) * len(scenarios))),
    )
    store = SqlStore.from_url(f"sqlite:///{folder}/benchmark.db")
    await store.prepare()
    clock = SystemClock()
    benchmark = Benchmark(
        Experiment(manifest=manifest, created_at=clock.now()), store, open_client, store
    )
    started = time.perf_counter()
    result = await benchmark.execute()
    seconds = time.perf_counter() - started
    await store.close()
    assert result.progress.done == result.calls == manifest.planned_runs
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"runs": manifest.planned_runs, "seconds": seconds, "peak_mb": peak}


def measure(runs: int) -> dict[str, float]:
    """`execute` in a process of its own."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            __name__ if __name__ != "__main__" else __spec__.name,
            "--",
            str(runs),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def main(sizes: tuple[int, ...] = SIZES) -> None:
    """Print a line per size."""
    for size in sizes:
        figures = measure(size)
        print(
            f"embedded, {figures['runs']:>7,.0f} runs: "
            f"{figures['runs'] / figures['seconds']:>7,.0f} runs/s, "
            f"peak memory {figures['peak_mb']:.0f} MB",
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--"]:
        with tempfile.TemporaryDirectory() as scratch:
            print(json.dumps(asyncio.run(execute(int(sys.argv[2]), Path(scratch)))))
    else:
        main(tuple(map(int, sys.argv[1:])) or SIZES)
