"""The time until each page shows its data, in Chromium, when the store has just changed."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from socratic_bench.domain.experiment.manifest import Experiment
from tests.benchmarks.scale.stores import FilledStore
from tests.dashboard.conftest import ARGUMENTS, BROWSERS

if TYPE_CHECKING:
    from playwright.async_api import Browser

ROUNDS = 3
_PATIENCE_MS = 60_000

_NOTE = """
    selector => {
        const look = () => {
            if (document.querySelector(selector)) window.usableAt = performance.now();
            else requestAnimationFrame(look);
        };
        look();
    }
"""


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
        Visit("ranking, a row opened", f"/research.html?{opened}", "#ranking tr.row + tr svg"),
        Visit("ranking of all", "/research.html?experiment=all", "#ranking:not(.loading) tr.row"),
        Visit("heat map", "/heatmap.html", "#map table td"),
        Visit("compare", "/compare.html", "#said article, #said section"),
        Visit("run", f"/run.html?run={run}", "article"),
        Visit("scenarios", "/scenarios.html", "#overview tbody tr"),
        Visit("experiments", "/experiments.html", "#experiments tbody tr"),
        Visit("one experiment", f"/experiments.html?experiment={id_}", "#detail tbody tr"),
        Visit("method", "/methodology.html", "main h1"),
        Visit("palette", "/methodology.html", "#palette-list li:nth-child(12)", "/"),
    ]


async def times_of(stores: Sequence[FilledStore]) -> dict[str, list[float]]:
    """Return the median seconds of each page, one figure for each store, in turns."""
    from playwright.async_api import async_playwright

    executable = next(found for name in BROWSERS if (found := shutil.which(name)))
    table: dict[str, list[float]] = {}
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable, args=ARGUMENTS)
        for visits in zip(*(visits_of(store.experiments) for store in stores), strict=True):
            taken: list[list[float]] = [[] for _ in stores]
            for _ in range(ROUNDS + 1):  # the first has the API read the plans
                for store, visit, times in zip(stores, visits, taken, strict=True):
                    times.append(await _time(browser, store, visit))
            table[visits[0].name] = [statistics.median(times[1:]) for times in taken]
        await browser.close()
    return table


async def _time(browser: Browser, store: FilledStore, visit: Visit) -> float:
    await store.change()
    context = await browser.new_context(viewport={"width": 1440, "height": 1000})
    try:
        page = await context.new_page()
        await page.goto(store.address + visit.path, wait_until="commit")
        if visit.presses:
            await page.wait_for_load_state("load")
            await page.evaluate("performance.mark('pressed')")
            await page.keyboard.press(visit.presses)
        await page.evaluate(_NOTE, visit.shows)
        await page.wait_for_function("window.usableAt", timeout=_PATIENCE_MS)
        milliseconds: float = await page.evaluate(
            "usableAt - (performance.getEntriesByName('pressed')[0]?.startTime ?? 0)"
        )
        return milliseconds / 1000
    finally:
        await context.close()
