"""The heat map of tutors and scenarios in a real browser."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from socratic_bench.adapters.sql.store import SqlStore
from tests.dashboard.conftest import Visit
from tests.dashboard.research_page import SCREENS, width_of
from tests.dashboard.seeding import experiment, seed, tutors
from tests.dashboard.test_accessibility import findings

pytestmark = [
    pytest.mark.connected,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.xdist_group("browser"),
]


async def test_each_field_has_the_score_of_the_api_and_leads_to_its_runs(
    store: SqlStore, visit: Visit, address: str
):
    await seed(store, experiment(tutors(4)))
    async with httpx.AsyncClient(base_url=address) as client:
        table = (await client.get("/api/scenario-scores")).json()
    page = await visit("/heatmap.html?vector=exploratory")
    await page.locator("table.heat td").first.wait_for()

    shown = await page.locator("table.heat tbody tr").evaluate_all(
        "rows => Object.fromEntries(rows.map(row => [row.querySelector('bdi').title,"
        " [...row.querySelectorAll('td')].map(field => field.textContent)]))"
    )
    assert shown == {
        model["model_id"]: [f"{each['vectors']['exploratory']:.2f}" for each in model["scores"]]
        for model in table["models"]
    }
    await page.locator("#vector").select_option("verbosity")
    assert "vector=verbosity" in page.url
    await page.locator("table.heat td a").first.click()
    await page.locator("tr.runs").first.wait_for()


@SCREENS
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing_on_a_heat_map(
    store: SqlStore, visit: Visit, viewport: Any, scheme: str
):
    await seed(store, experiment(tutors(6)), share=0.3)
    page = await visit("/heatmap.html", viewport=viewport, color_scheme=scheme)
    await page.locator("table.heat td").first.wait_for()

    assert await findings(page) == []
    assert await width_of(page) <= viewport["width"]
