"""The heat map of tutors and scenarios in a real browser."""

from __future__ import annotations

import httpx
import pytest

from socratic_bench.adapters.stores.sql.store import SqlStore
from tests.dashboard.accessibility import assert_accessible
from tests.dashboard.conftest import Visit
from tests.dashboard.seeding import experiment, seed, tutors
from tests.waiting import PATIENCE

pytestmark = [
    pytest.mark.long,
    pytest.mark.connected,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.xdist_group("browser"),
]


async def test_each_field_has_the_score_of_the_api_and_leads_to_its_runs(
    store: SqlStore, visit: Visit, address: str
):
    await seed(store, experiment(tutors(4)))
    async with httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client:
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


async def test_axe_finds_nothing_on_a_heat_map(store: SqlStore, visit: Visit):
    await seed(store, experiment(tutors(6)), share=0.3)

    await assert_accessible(visit, {"/heatmap.html": "table.heat td"})
