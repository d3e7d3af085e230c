"""Two tutors side by side, and the palette that leads to everything, in a real browser."""

from __future__ import annotations

import httpx
import pytest

from socratic_bench.adapters.stores.sql.store import SqlStore
from tests.contract.store.facts import a_response
from tests.dashboard.accessibility import assert_accessible, findings
from tests.dashboard.conftest import Visit
from tests.dashboard.reading.test_run import HOSTILE
from tests.dashboard.research_page import wind_on
from tests.dashboard.seeding import experiment, seed, tutors
from tests.waiting import PATIENCE

pytestmark = [
    pytest.mark.long,
    pytest.mark.connected,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.xdist_group("browser"),
]

PAIR = {"a": "provider-1/tutor-1", "b": "provider-2/tutor-2"}
ADDRESS = "/compare.html?a=provider-1%2Ftutor-1&b=provider-2%2Ftutor-2"


async def seeded(store: SqlStore) -> None:
    planned = experiment(tutors(4))
    await seed(store, planned)
    texts = {"provider-1/tutor-1": HOSTILE, "provider-2/tutor-2": "You must rest. Why not?"}
    runs = [run for run in planned.runs() if run.model_id in texts]
    await store.record([a_response(run, texts[run.model_id]) for run in runs], [None] * len(runs))


async def test_the_verdict_and_the_order_of_scenarios_are_those_of_the_api(
    store: SqlStore, visit: Visit, address: str
):
    await seeded(store)
    async with httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client:
        expected = (await client.get("/api/compare", params=PAIR)).json()
    page = await visit(ADDRESS)
    rows = page.locator("tr[data-scenario]")
    await rows.first.wait_for()

    shown = await rows.evaluate_all("rows => rows.map(row => row.dataset.scenario)")
    assert shown == [each["scenario_id"] for each in expected["by_scenario"]]
    verdict = await page.locator("#verdict").inner_text()
    overall = expected["figures"][0]
    higher = expected["first" if overall["difference"] > 0 else "second"]["model_name"]
    assert verdict.startswith(f"{higher} scores higher")
    assert f"by {abs(overall['difference']):.2f}" in verdict
    assert ("more than chance can explain" in verdict) == expected["is_real"]
    assert ", paired by scenario)." in verdict
    assert await page.locator("table.differences circle.model").count() == 4 + 15


async def test_a_chosen_scenario_shows_what_both_said_as_text_and_stays_in_the_address(
    store: SqlStore, visit: Visit
):
    await seeded(store)
    page = await visit(ADDRESS)
    await page.locator("tr[data-scenario='student-2'] button").press("Enter")
    await page.locator("#responses-heading", has_text="student-2").wait_for()

    assert "scenario=student-2" in page.url
    focused = "document.activeElement.closest('tr')?.dataset.scenario"
    assert await page.evaluate(focused) == "student-2"
    texts = await page.locator("#said .response").evaluate_all(
        "nodes => nodes.map(node => node.textContent)"
    )
    assert texts == [HOSTILE, "You must rest. Why not?"]
    assert await page.locator("#said .response mark.lowers").all_inner_texts() == [
        "should",
        "always",
        "must",
    ]
    assert await page.locator("main script, main img").count() == 0

    await page.locator("#repeat").select_option("3")
    await page.locator("#said a[href*='-000003-']").first.wait_for()
    await page.go_back()
    await page.locator("#said a[href*='-000001-']").first.wait_for()


async def test_without_a_pair_the_two_best_are_compared_and_without_tutors_nothing_is(
    store: SqlStore, visit: Visit
):
    page = await visit("/compare.html", clock=True)
    await page.locator("#verdict", has_text="no two tutors").wait_for()

    await seeded(store)
    shown = page.locator("tr[data-scenario]").first
    await wind_on(page, shown.is_visible, "the page to find two tutors")
    assert "a=reference%2Fsocratic" in page.url
    assert await page.locator("table.differences circle.reference").count() == 4 + 15

    page = await visit("/compare.html?a=provider-1/tutor-1&b=nobody", quiet=False)
    await page.locator("#verdict", has_text="there is no model 'nobody'").wait_for()


async def test_the_palette_leads_to_a_tutor_a_page_and_a_scenario(store: SqlStore, visit: Visit):
    await seeded(store)
    page = await visit("/methodology.html")
    await page.locator("#figures .sums").wait_for()
    await page.locator("#text").press("/")  # typed into the box, and no more
    assert not await page.locator("dialog.palette").is_visible()

    await page.locator("h1").click()
    await page.keyboard.press("/")
    options = page.locator("dialog.palette li")
    await page.keyboard.type("tutor 2")
    await options.filter(has_text="Tutor 2").wait_for()
    await page.keyboard.press("Enter")
    await page.locator("tr.row.open", has_text="Tutor 2").wait_for()

    await page.keyboard.press("Control+k")
    await page.keyboard.type("nothing")
    await page.keyboard.press("Escape")
    await page.locator("dialog.palette").wait_for(state="hidden")
    await page.keyboard.press("Control+k")
    await options.filter(has_text="student-2").wait_for()
    await page.keyboard.type("scenario student")
    await page.keyboard.press("ArrowDown")
    active = await page.locator("dialog.palette input").get_attribute("aria-activedescendant")
    assert active == "palette-1"
    assert await findings(page) == []
    await page.keyboard.press("Enter")
    section = page.locator("#scenario-student-2")
    await section.wait_for()
    assert "/scenarios.html?experiment=exp-" in page.url
    assert await page.evaluate("document.activeElement.id") == "scenario-student-2"


async def test_axe_finds_nothing_on_a_comparison(store: SqlStore, visit: Visit):
    await seeded(store)

    await assert_accessible(visit, {ADDRESS: "#said .response"})
