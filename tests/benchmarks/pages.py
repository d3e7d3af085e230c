"""The time from a stored score to a changed page, on RabbitMQ and PostgreSQL, in Chromium.

    python -m tests.benchmarks.pages [RUNS_PER_SECOND] [SECONDS]

The benchmark requests runs at a steady pace. Runner, judge, curator and API are processes of their
own; a browser shows the ranking. The page notes when its sentence changes, which names the number
of runs; the benchmark notes when the store has counted each run. It counts runs instead of
following them, as `visible_latency` does.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from statistics import quantiles
from typing import TYPE_CHECKING

from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.manifest import Experiment
from tests.benchmarks.running_services import PATIENCE, experiment_of, running
from tests.benchmarks.visible_latency import TUTORS, request
from tests.dashboard.browser import ARGUMENTS, BROWSERS

if TYPE_CHECKING:
    from playwright.async_api import Page

BUDGET_MS = 250
TAIL_SECONDS = 5
"""Seconds after which the last change has come by the slow way."""

WATCH = """
    window.changes = [];
    addEventListener("DOMContentLoaded", () => {
        const summary = document.getElementById("summary");
        const note = () => {
            const found = /([\\d,]+) runs?:/.exec(summary.textContent);
            const runs = found ? Number(found[1].replaceAll(",", "")) : 0;
            const at = performance.timeOrigin + performance.now();
            if (runs && runs !== window.changes.at(-1)?.[1]) window.changes.push([at, runs]);
        };
        const everything = {childList: true, characterData: true, subtree: true};
        new MutationObserver(note).observe(summary, everything);
    });
"""
"""Notes when the page says how many runs."""


@asynccontextmanager
async def shown(address: str, experiment_id: str) -> AsyncIterator[Page]:
    """The ranking of an experiment in a browser."""
    from playwright.async_api import async_playwright

    executable = next(found for name in BROWSERS if (found := shutil.which(name)))
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable, args=ARGUMENTS)
        page = await browser.new_page()
        await page.add_init_script(WATCH)
        await page.goto(f"{address}/research.html?experiment={experiment_id}")
        await page.wait_for_selector("#ranking:not(.loading)", state="attached")
        yield page
        await browser.close()


async def watch(experiment: Experiment, store: SqlStore, stored_at: list[float]) -> None:
    """Note when the store has counted each run."""
    async with asyncio.timeout(PATIENCE):
        while len(stored_at) < experiment.manifest.planned_runs:
            progress = await store.progress(experiment.experiment_id)
            stored_at += [time.time()] * (progress.done - len(stored_at))
            await asyncio.sleep(0.005)


def latencies(stored_at: Sequence[float], changes: Sequence[tuple[float, int]]) -> list[float]:
    """Return the seconds from each stored run to the first sentence that counts it."""
    found: list[float] = []
    for milliseconds, runs in changes:
        found += [milliseconds / 1000 - each for each in stored_at[len(found) : runs]]
    return found


async def measure(rate: int, seconds: int) -> None:
    """Print one line."""
    experiment = experiment_of(TUTORS, rate * seconds)
    requested_at: list[float] = []
    stored_at: list[float] = []
    async with running(runner=1, judge=1, curator=1, api=1) as (broker, store, processes):
        await store.register(experiment)
        address = (await processes["api"].logged("serving"))["address"]
        async with shown(address, experiment.experiment_id) as page:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(request(experiment, broker, rate, requested_at))
                tasks.create_task(watch(experiment, store, stored_at))
            await page.wait_for_timeout(TAIL_SECONDS * 1000)
            changes = await page.evaluate("window.changes")
    taken = latencies(stored_at, changes)
    warm = taken[rate * 2 :]
    half, *_ = quantiles(warm, n=2)
    *_, p99 = quantiles(warm, n=100)
    print(
        f"{rate} runs/s for {seconds} s, from the store to the page: {len(changes)} changes of "
        f"the page, median {half * 1000:.0f} ms, 99th percentile {p99 * 1000:.0f} ms, longest "
        f"{max(warm) * 1000:.0f} ms (budget: {BUDGET_MS} ms); {len(stored_at) - len(taken)} never"
    )


def main(rate: int = 500, seconds: int = 20) -> None:
    """Measure at so many runs per second."""
    asyncio.run(measure(rate, seconds))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
