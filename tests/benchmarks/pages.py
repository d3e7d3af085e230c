"""The pages in Chromium: until their data is there, and until a stored score is in the ranking.

    python -m tests.benchmarks.pages [show|change] [FOLDER|postgresql, or RUNS_PER_SECOND SECONDS]

`show` takes the time until each page shows its data, in turns over a store of a thousand runs and
one of a million, right after the store changed. A `FOLDER` keeps SQLite's stores for the next time.

`change` takes the time from a stored score to a changed page. The benchmark requests runs at a
steady pace from a runner, a judge, a curator and an API on RabbitMQ and PostgreSQL, while a browser
shows the ranking. The page notes when its sentence changes, which names the number of runs; the
benchmark notes when the store has counted each run. It counts runs instead of following them, as
the latency of `services` does.
"""

from __future__ import annotations

import asyncio
import math
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.manifest import Experiment
from tests.benchmarks.api import print_heads, print_medians
from tests.benchmarks.embedded import experiment_of
from tests.benchmarks.filled_stores import REST_AFTER, FilledStore, filled_stores
from tests.benchmarks.services import PATIENCE, request, running, spread
from tests.dashboard.browser import launched

if TYPE_CHECKING:
    from playwright.async_api import Browser

ROUNDS = 3
BUDGET_MS = 250
_PATIENCE_MS = 20_000
_TAIL_SECONDS = 5
"""Seconds after which the last change has come by the slow way."""

_SEEN = """
    selector => new Promise(seen => {
        const look = () => {
            if (document.querySelector(selector)) seen(performance.now());
            else requestAnimationFrame(look);
        };
        look();
    })
"""
"""The moment when a selector first matches, in milliseconds since the page was asked for."""

_WATCH = """
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


@dataclass(frozen=True, slots=True)
class Visit:
    """A page, and what it shows once it is usable."""

    name: str
    path: str
    shows: str
    """A selector."""

    presses: str = ""
    """A key that is pressed first."""


def visits_of(experiments: Sequence[Experiment]) -> list[Visit]:
    """Return a visit to every page, and to parts that ask for more."""
    first = experiments[0]
    model, scenario = first.manifest.models[0], first.manifest.scenarios[0]
    run = first.run(model.id, scenario, 1).run_id
    id_ = first.experiment_id
    opened = f"open={quote(model.id, safe='')}"
    return [
        Visit("ranking", "/research.html", "#ranking:not(.loading) tr.row[data-model]"),
        Visit("row opened", f"/research.html?{opened}", "tr.detail:not([hidden]) .group"),
        Visit(
            "ranking of all",
            "/research.html?experiment=all",
            "#ranking:not(.loading) tr.row[data-model]",
        ),
        Visit("heat map", "/heatmap.html", "#map table td"),
        Visit("compare", "/compare.html", "#said .pair"),
        Visit("run", f"/run.html?run={run}", "article"),
        Visit("scenarios", "/scenarios.html", "#overview tbody tr"),
        Visit("frontier", "/frontier.html", "main svg circle"),
        Visit("trends", "/trends.html", "#trends:not([hidden]) #multiples svg"),
        Visit("experiments", "/experiments.html", "#experiments tbody tr"),
        Visit("one experiment", f"/experiments.html?experiment={id_}", "#detail tbody tr"),
        Visit("method", "/methodology.html", "main h1"),
        Visit("palette", "/methodology.html", "#palette-list li:nth-child(12)", "/"),
    ]


async def show(place: str) -> None:
    """Print the median milliseconds of each page, one column for each store."""
    async with filled_stores(place) as stores, launched() as browser:
        print_heads("pages, milliseconds", stores)
        for visits in zip(*(visits_of(store.experiments) for store in stores), strict=True):
            taken: list[list[float]] = [[] for _ in stores]
            for _ in range(ROUNDS + 1):  # the first has the API read the plans
                for store, visit, times in zip(stores, visits, taken, strict=True):
                    times.append(seconds := await _seconds(browser, store, visit))
                    await asyncio.sleep(0 if math.isinf(seconds) else REST_AFTER * seconds)
            print_medians(visits[0].name, taken)


async def _seconds(browser: Browser, store: FilledStore, visit: Visit) -> float:
    await store.change()
    context = await browser.new_context(viewport={"width": 1440, "height": 1000})
    try:
        page = await context.new_page()
        page.set_default_timeout(_PATIENCE_MS)
        await page.goto(store.address + visit.path, wait_until="commit")
        begun: float = 0.0
        if visit.presses:
            await page.wait_for_load_state("load")
            begun = await page.evaluate("() => performance.now()")
            await page.keyboard.press(visit.presses)
        async with asyncio.timeout(_PATIENCE_MS / 1000):
            seen: float = await page.evaluate(_SEEN, visit.shows)
        return (seen - begun) / 1000
    except TimeoutError:
        return math.inf
    finally:
        await context.close()


async def change(rate: int = 500, seconds: int = 20) -> None:
    """Print a line: the time from a score in the store to the page that counts it."""
    experiment = experiment_of(rate * seconds)
    requested_at: list[float] = []
    stored_at: list[float] = []
    async with (
        running(runner=1, judge=1, curator=1, api=1) as (broker, store, processes),
        launched() as browser,
    ):
        await store.register(experiment)
        address = (await processes["api"].logged("serving"))["address"]
        page = await browser.new_page()
        await page.add_init_script(_WATCH)
        await page.goto(f"{address}/research.html?experiment={experiment.experiment_id}")
        await page.wait_for_selector("#ranking:not(.loading)", state="attached")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(request(experiment, broker, rate, requested_at))
            tasks.create_task(_watch(experiment, store, stored_at))
        await page.wait_for_timeout(_TAIL_SECONDS * 1000)
        changes = await page.evaluate("window.changes")
    taken = _latencies(stored_at, changes)
    print(
        f"{rate} runs/s for {seconds} s, from the store to the page: {len(changes)} changes of "
        f"the page, {spread(taken[rate * 2 :])} (budget: {BUDGET_MS} ms); "
        f"{len(stored_at) - len(taken)} never",
        flush=True,
    )


async def _watch(experiment: Experiment, store: SqlStore, stored_at: list[float]) -> None:
    """Note when the store has counted each run."""
    async with asyncio.timeout(PATIENCE):
        while len(stored_at) < experiment.manifest.planned_runs:
            progress = await store.progress(experiment.experiment_id)
            stored_at += [time.time()] * (progress.done - len(stored_at))
            await asyncio.sleep(0.005)


def _latencies(stored_at: Sequence[float], changes: Sequence[tuple[float, int]]) -> list[float]:
    """Return the seconds from each stored run to the first sentence that counts it."""
    found: list[float] = []
    for milliseconds, runs in changes:
        found += [milliseconds / 1000 - each for each in stored_at[len(found) : runs]]
    return found


def main(name: str | None = None, *arguments: str) -> None:
    """Take one measurement, or both; without a name, the argument is a folder of stores."""
    if name not in (None, "show", "change"):
        sys.exit(__doc__)
    if name in (None, "show"):
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(show(*arguments or (folder,)))
    if name in (None, "change"):
        asyncio.run(change(*map(int, arguments if name else ())))


if __name__ == "__main__":
    main(*sys.argv[1:])
