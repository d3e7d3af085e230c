"""The time until each page shows its data, in Chromium, when the store has just changed."""

from __future__ import annotations

import asyncio
import math
import shutil
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from socratic_bench.domain.experiment.manifest import Experiment
from tests.benchmarks.scale.stores import FilledStore
from tests.dashboard.browser import ARGUMENTS, BROWSERS

if TYPE_CHECKING:
    from playwright.async_api import Browser

ROUNDS = 3
_PATIENCE_MS = 20_000
_REST_AFTER = 2
"""The API serves an answer for twice as long as it took to make."""

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
                    times.append(seconds := await _time(browser, store, visit))
                    await asyncio.sleep(0 if math.isinf(seconds) else _REST_AFTER * seconds)
            table[visits[0].name] = [statistics.median(times[1:]) for times in taken]
        await browser.close()
    return table


async def _time(browser: Browser, store: FilledStore, visit: Visit) -> float:
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
