"""Cost and latency against score in a real browser: what is drawn, and how it is reached."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.manifest import TutorModel
from tests.contract.store.facts import a_score
from tests.dashboard.accessibility import assert_accessible
from tests.dashboard.conftest import PHONE, Visit
from tests.dashboard.research_page import models_at
from tests.dashboard.seeding import REFERENCES, experiment, seed, tutors

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = [
    pytest.mark.long,
    pytest.mark.connected,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.xdist_group("browser"),
]

POINTS = "#cost svg.chart a"
OVERLAPS = """texts => {
    const boxes = texts.map(text => text.getBoundingClientRect());
    const pairs = [];
    for (const [at, one] of boxes.entries()) for (const other of boxes.slice(at + 1)) {
        const apart = one.right <= other.left || other.right <= one.left
            || one.bottom - 2 <= other.top || other.bottom - 2 <= one.top;
        if (!apart) pairs.push([one.left, one.top, other.left, other.top]);
    }
    return pairs;
}"""


async def priced(store: SqlStore, **prices: tuple[float | None, int]) -> None:
    """Store an experiment of models with a level of score and nanodollars for each response."""
    models = [TutorModel(id=f"shop/{name}", name=name) for name in prices]
    planned = experiment((*REFERENCES, *models), repeats=1)
    await store.register(planned)
    scores = []
    for run in planned.runs():
        level, cost = prices.get(run.model_id.removeprefix("shop/"), (0.5, 0))
        vectors = dict.fromkeys(("verbosity", "exploratory", "interrogative"), level or 0.0)
        changed = {"vectors": vectors, "overall": level or 0.0, "latency_ms": cost // 10}
        paid = None if cost < 0 else cost
        scores.append(a_score(run).model_copy(update=changed | {"cost_nanodollars": paid}))
    await store.fold(scores, ())
    await store.complete(planned.experiment_id, planned.created_at)


async def points_of(page: Page) -> list[str]:
    await page.locator(POINTS).first.wait_for(state="attached")
    told: list[str] = await page.locator(POINTS).evaluate_all(
        "points => points.map(point => point.getAttribute('aria-label'))"
    )
    return told


async def test_the_frontier_has_those_that_no_other_beats_and_the_table_names_who_does(
    store: SqlStore, visit: Visit
):
    await priced(
        store,
        cheap=(0.3, 1_000),
        middle=(0.6, 50_000),
        dearer_and_worse=(0.5, 80_000),
        best=(0.9, 400_000),
        unpriced=(0.95, -1),
    )
    page = await visit("/frontier.html")

    told = await points_of(page)

    on = [each.partition(":")[0] for each in told if each.endswith("on the frontier")]
    assert on == ["cheap", "middle", "best"]
    [middle] = [each for each in told if each.startswith("middle:")]
    around = r"middle: 0\.60 \(95 % 0\.\d\d to 0\.\d\d\), \$0\.0500 for 1,000 responses"
    assert re.fullmatch(f"{around}; on the frontier", middle)
    assert not any(each.startswith("unpriced") for each in told)
    assert "unpriced" in await page.locator("#cost-unknown").inner_text()
    row = page.locator("tr[data-model='shop/dearer_and_worse']")
    assert await row.locator("td.cost-place").inner_text() == "no: middle"
    address = await row.locator("td.cost-place a").get_attribute("href")
    assert address == "compare.html?a=shop%2Fmiddle&b=shop%2Fdearer_and_worse"
    unknown = page.locator("tr[data-model='shop/unpriced']")
    assert await unknown.locator("td.cost").inner_text() == "–"
    assert await unknown.locator("td.cost-place").inner_text() == "–"


async def test_reference_tutors_are_named_as_such_and_are_on_no_frontier(
    store: SqlStore, visit: Visit
):
    await priced(store, only=(0.4, 20_000))
    page = await visit("/frontier.html")

    told = await points_of(page)

    socratic = next(each for each in told if each.startswith("Socratic tutor"))
    assert ", a reference tutor: 0.50" in socratic
    assert socratic.endswith("$0.00 for 1,000 responses, simulated")
    assert "Socratic tutor (reference)" in await page.locator("#cost svg").inner_html()
    await page.locator("#references").uncheck()
    assert len(await points_of(page)) == 1
    assert "references=no" in page.url


async def test_every_point_is_reached_by_the_keyboard_and_leads_to_its_row(
    store: SqlStore, visit: Visit
):
    await seed(store, experiment(tutors(8)), failing=0)
    page = await visit("/frontier.html")
    told = await points_of(page)
    await page.locator("#filters summary").focus()
    await page.keyboard.press("Tab")

    reached = []
    for _ in told:
        reached.append(await page.locator("#cost .readout").inner_text())
        await page.keyboard.press("ArrowRight")

    assert reached == told
    await page.keyboard.press("End")
    await page.keyboard.press("Enter")
    await page.locator("tr.detail:not([hidden])").first.wait_for()
    assert "research.html?open=" in page.url


@pytest.mark.parametrize("viewport", [{"width": 1440, "height": 1000}, PHONE])
async def test_no_name_of_25_covers_another(store: SqlStore, visit: Visit, viewport: Any):
    await seed(store, experiment(tutors(25)), failing=0)
    page = await visit("/frontier.html", viewport=viewport)
    assert len(await points_of(page)) == 25

    names = page.locator(f"{POINTS} text")

    assert await names.count() >= 20
    assert await names.evaluate_all(OVERLAPS) == []


async def test_scale_filter_and_profile_stand_in_the_address(
    store: SqlStore, visit: Visit, address: str
):
    await seed(store, experiment(tutors(12)))
    page = await visit("/frontier.html?scale=log&q=tutor-3")
    await points_of(page)
    assert "logarithmic" in await page.locator("#cost svg").inner_html()
    assert await page.locator("#table tbody tr").count() == 1
    assert await page.locator(f"{POINTS}.faded").count() == 11

    await page.locator("#scale").select_option("linear")
    await page.locator("#filter").fill("")

    assert page.url == f"{address}/frontier.html?scale=linear"
    assert "logarithmic" not in await page.locator("#cost svg").inner_html()
    assert await page.locator("#table tbody tr").count() == len(await models_at(address))


async def test_a_page_without_results_or_prices_says_so(store: SqlStore, visit: Visit):
    page = await visit("/frontier.html")
    await page.locator("#empty").wait_for()

    await priced(store, unpriced=(0.4, -1))
    page = await visit("/frontier.html?references=no")
    await page.get_by_text("No cost is known.").wait_for()
    assert not await page.locator("#cost").is_visible()


async def test_an_api_that_is_away_is_said_and_the_figures_stay(store: SqlStore, visit: Visit):
    await seed(store, experiment(tutors(4)))
    page = await visit("/frontier.html", quiet=False, clock=True)
    before = await points_of(page)
    await page.route("**/api/**", lambda route: route.abort())

    await page.clock.run_for(16_000)

    await page.get_by_text("The API does not answer. The figures below are those of").wait_for()
    assert await points_of(page) == before


async def test_axe_finds_nothing_on_the_page_of_costs(store: SqlStore, visit: Visit):
    await seed(store, experiment(tutors(14)))

    await assert_accessible(visit, {"/frontier.html": POINTS})
