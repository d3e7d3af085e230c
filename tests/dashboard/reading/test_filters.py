"""The filters of the ranking, and pickers among hundreds of experiments, in a real browser."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

from socratic_bench.adapters.stores.sql.store import SqlStore
from tests.dashboard.accessibility import assert_accessible
from tests.dashboard.conftest import Visit
from tests.dashboard.research_page import MODEL_ROWS, rows_of
from tests.dashboard.seeding import MONDAY, experiment, seed, tutors
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = [
    pytest.mark.long,
    pytest.mark.connected,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.xdist_group("browser"),
]

WEEK = timedelta(weeks=1)
FIRST, SECOND = (model.id for model in tutors(4)[2:])


async def two_weeks(store: SqlStore) -> None:
    for week in range(2):
        created_at = MONDAY + week * WEEK
        planned = experiment(tutors(6), occasion=f"2026-W{10 + week}", created_at=created_at)
        await seed(store, planned)


async def told(page: Page, text: str) -> None:
    """Wait until the page says what it filters."""
    await page.locator("#filtered", has_text=text).wait_for()


def query_of(page: Page) -> list[tuple[str, str]]:
    return parse_qsl(urlsplit(page.url).query)


async def test_a_choice_filters_the_ranking_and_stands_in_the_address(
    store: SqlStore, visit: Visit, address: str
):
    await two_weeks(store)
    # There, the days of UTC begin at 13:00 of the day before.
    page = await visit("/research.html", timezone_id="Pacific/Pago_Pago")
    before = await rows_of(page)
    assert not await page.locator("#filtered").is_visible()

    await page.locator("#filters summary").click()
    await page.locator("#dimension").select_option("ethical")
    await told(page, "Filtered: dimension ethical.")
    async with httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client:
        answer = await client.get("/api/model-comparison", params={"dimension": "ethical"})
    expected = [
        (each["model_id"], f"{each['overall_score']:.2f}") for each in answer.json()["models"]
    ]
    rows = await rows_of(page)
    assert [(row["model"], row["score"]) for row in rows] == expected
    assert [row["score"] for row in rows] != [row["score"] for row in before]
    assert " on ethical. " in str(await page.locator("#finding").text_content())
    assert query_of(page) == [("dimension", "ethical")]
    link = await page.locator("#download").get_attribute("href")
    assert "dimension=ethical" in str(link)

    await page.locator("#until").fill("2026-03-05")
    await told(page, "experiments before 2026-03-06 00:00 UTC")
    provenance = str(await page.locator("#provenance").text_content())
    assert "2026-W10" in provenance
    assert "begun Mar 2, 2026 UTC" in provenance
    assert query_of(page) == [("dimension", "ethical"), ("until", "2026-03-05")]

    await page.go_back()
    await page.locator("#provenance", has_text="2026-W11").wait_for()
    assert await page.locator("#until").input_value() == ""

    await page.get_by_role("link", name="Clear the filters").click()
    await page.locator("#provenance").wait_for()
    assert await rows_of(page) == before
    assert query_of(page) == []
    assert not await page.locator("#filtered").is_visible()


async def test_an_address_with_filters_shows_them_and_the_scenarios_of_the_dimension(
    store: SqlStore, visit: Visit
):
    await two_weeks(store)
    asked = f"model={FIRST}&model={SECOND}&dimension=student&since=2026-03-09&open={FIRST}"
    page = await visit(f"/research.html?{asked}")

    await told(page, "Ranks are those among all models of the table.")
    assert {row["model"] for row in await rows_of(page)} == {FIRST, SECOND}
    assert await page.locator("#filters").get_attribute("open") is not None
    assert await page.locator("#dimension").input_value() == "student"
    assert await page.locator("#since").input_value() == "2026-03-09"
    assert await page.locator("#model option:checked").text_content() == "2 tutors"
    # Hidden models may score higher: none of those shown leads.
    assert await page.locator("#finding").text_content() == ""
    scenarios = page.locator("tr.detail:visible tr[data-scenario]")
    await scenarios.nth(4).wait_for()
    assert await scenarios.count() == 5
    ids = await scenarios.evaluate_all("rows => rows.map(row => row.dataset.scenario)")
    assert all(each.startswith("student-") for each in ids)

    await page.locator("#model").select_option("")
    await page.locator(MODEL_ROWS).nth(5).wait_for()
    assert [name for name, _ in query_of(page)] == ["dimension", "since", "open"]


async def test_a_time_without_an_experiment_says_so_and_a_link_leads_back(
    store: SqlStore, visit: Visit
):
    await two_weeks(store)
    page = await visit("/research.html?since=2027-01-01")

    await told(page, "No experiment fits.")
    assert not await page.locator("#empty").is_visible()
    assert not await page.locator("#ranking").is_visible()
    assert await page.locator("#since").input_value() == "2027-01-01"

    await page.get_by_role("link", name="Clear the filters").click()
    await page.locator(MODEL_ROWS).nth(5).wait_for()


async def test_a_wrong_filter_is_explained_and_a_link_leads_back(store: SqlStore, visit: Visit):
    await two_weeks(store)
    page = await visit("/research.html?dimension=ethics", quiet=False)

    await page.locator("#away", has_text='did you mean "ethical"?').wait_for()
    await page.get_by_role("link", name="Clear the filters").click()
    await page.locator(MODEL_ROWS).nth(5).wait_for()


async def test_cost_and_latency_are_filtered_by_dimension_and_time(
    store: SqlStore, visit: Visit, address: str
):
    await two_weeks(store)
    page = await visit(f"/frontier.html?model={FIRST}&until=2026-03-05")
    await told(page, "experiments before 2026-03-06 00:00 UTC")
    points = page.locator("#cost svg.chart a")
    await points.nth(5).wait_for(state="attached")

    await page.locator("#dimension").select_option("ethical")
    await told(page, "Filtered: dimension ethical;")
    async with httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client:
        asked = {"dimension": "ethical", "until": "2026-03-05"}
        models = (await client.get("/api/model-comparison", params=asked)).json()["models"]
    text = str(await page.locator("#table").text_content())
    assert all(f"{each['overall_score']:.2f}" in text for each in models)
    # A frontier is that of all models: it has no filter by one.
    assert query_of(page) == [("dimension", "ethical"), ("until", "2026-03-05")]
    assert "2026-W10" in str(await page.locator("#provenance").text_content())

    await page.get_by_role("link", name="Clear the filters").click()
    await page.locator("#provenance", has_text="2026-W11").wait_for()
    wrong = await visit("/frontier.html?dimension=ethics", quiet=False)
    await wrong.locator("#away", has_text='did you mean "ethical"?').wait_for()
    assert await wrong.get_by_role("link", name="Clear the filters").is_visible()


async def test_the_filters_fit_and_are_accessible(store: SqlStore, visit: Visit):
    await two_weeks(store)
    asked = f"model={FIRST}&model={SECOND}&dimension=student&since=2026-03-09"
    said = "#filtered:has-text('Every figure is that of this dimension alone.')"
    pages = {f"/{name}.html?{asked}": said for name in ("research", "frontier")}

    await assert_accessible(visit, pages)


MANY = 130
OLDEST = "occasion 000"
PICKERS = [
    ("/research.html", "#experiment"),
    ("/frontier.html", "#experiment"),
    ("/heatmap.html", "#experiment"),
    ("/compare.html", "#experiment"),
    ("/scenarios.html", "#experiment"),
    ("/methodology.html", "#interval-experiment"),
]


async def many(store: SqlStore) -> list[str]:
    """The ids of more experiments than a choice offers at once, the oldest first."""
    ids = []
    for number in range(MANY):
        created_at = MONDAY + number * timedelta(hours=1)
        planned = experiment(
            tutors(3), occasion=f"occasion {number:03}", created_at=created_at, repeats=1
        )
        await store.register(planned)
        ids.append(planned.experiment_id)
    return ids


async def test_every_choice_of_experiments_finds_one_among_hundreds(
    store: SqlStore, visit: Visit, address: str
):
    oldest, *_ = await many(store)
    page = await visit("/experiments.html")
    for path, select in PICKERS:
        await page.goto(address + path)
        options = page.locator(f"{select} option[title]")
        await page.locator(f"{select} option[title]").nth(99).wait_for(state="attached")
        assert await options.count() == 100, path
        assert await page.locator(f"{select} option[value='{oldest}']").count() == 0, path

        await page.get_by_label("Find experiment").fill(OLDEST.upper())
        await page.get_by_text("1 experiment found").wait_for()
        await page.locator(select).select_option(oldest)
        await page.wait_for_url(f"**experiment={oldest}**")
        assert await page.locator(select).input_value() == oldest, path

        await page.goto(f"{address}{path}?experiment={oldest}")
        await page.locator(f"{select} option[value='{oldest}']").wait_for(state="attached")
        assert await page.locator(select).input_value() == oldest, path


async def test_the_palette_finds_an_experiment_among_hundreds(store: SqlStore, visit: Visit):
    oldest, *_ = await many(store)
    page = await visit("/research.html")
    await page.locator("#provenance", has_text="experiment").wait_for()
    await page.keyboard.press("/")
    told = page.locator("dialog.palette [role=status]")
    await page.locator("dialog.palette li", has_text="occasion 129").wait_for()

    await page.locator("dialog.palette input").fill(f"experiment {OLDEST}")
    await page.locator("dialog.palette li", has_text=OLDEST).wait_for()
    assert await told.text_content() == "1 found"
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"**/experiments.html?experiment={oldest}")
