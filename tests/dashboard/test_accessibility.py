"""What axe finds on the pages: WCAG 2.2 at levels A and AA, and its own best practices."""

from __future__ import annotations

from typing import Any

import pytest

from socratic_bench.adapters.sql.store import SqlStore
from tests.dashboard.conftest import DESKTOP, PHONE, Visit
from tests.dashboard.seeding import experiment, seed, tutors

pytestmark = [
    pytest.mark.connected,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.xdist_group("browser"),
]
SCHEMES = ["light", "dark"]
VIEWPORTS = pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
READY = {
    "research.html": "tr.detail:not([hidden])",
    "methodology.html": "#figures .sums",
    "experiments.html": "#experiments tbody tr",
    "scenarios.html": "#overview tbody tr",
}


async def findings(page: Any) -> list[str]:
    """What axe complains about, with the first element it means."""
    from axe_playwright_python.async_playwright import Axe

    answer = (await Axe().run(page)).response
    return [
        f"{each['impact']} {each['id']}: {node['html'][:160]} {node['failureSummary'][:200]}"
        for each in answer["violations"]
        for node in each["nodes"][:1]
    ]


@VIEWPORTS
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", READY)
async def test_axe_finds_nothing_on_a_page_with_results(
    store: SqlStore, visit: Visit, name: str, scheme: str, viewport: Any
):
    await seed(store, experiment(tutors(12)), share=0.9)
    query = "?open=reference%2Fsocratic&open=provider-1%2Ftutor-1"
    page = await visit(f"/{name}{query}", viewport=viewport, color_scheme=scheme)
    await page.locator(READY[name]).first.wait_for()

    assert await findings(page) == []


@VIEWPORTS
async def test_axe_finds_nothing_on_an_experiment_in_detail(
    store: SqlStore, visit: Visit, viewport: Any
):
    planned = experiment(tutors(6))
    await seed(store, planned, share=0.5, failing=0.2)
    path = f"/experiments.html?experiment={planned.experiment_id}"
    page = await visit(path, viewport=viewport)
    await page.locator("#pending-runs tbody tr").first.wait_for()

    assert await findings(page) == []


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_axe_finds_nothing_on_a_page_without_results(visit: Visit, scheme: str):
    page = await visit("/", color_scheme=scheme)
    await page.locator("#empty").wait_for()

    assert await findings(page) == []
