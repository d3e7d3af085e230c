"""The method page in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from socratic_bench.adapters.stores.sql.store import SqlStore
from tests.dashboard.accessibility import findings
from tests.dashboard.conftest import DESKTOP, PHONE, Visit
from tests.dashboard.research_page import models_at, width_of
from tests.dashboard.seeding import experiment, seed, tutors

if TYPE_CHECKING:
    from playwright.async_api import Route

pytestmark = [
    pytest.mark.connected,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.xdist_group("browser"),
]

SCREENS = pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])


@SCREENS
async def test_profiles_are_described_with_examples_limits_labels_and_formulas(
    visit: Visit, tmp_path: Path, viewport: Any
):
    page = await visit("/methodology.html", viewport=viewport)
    await page.locator(".vector h3").nth(2).wait_for()
    await page.screenshot(path=tmp_path / "methodology.png", full_page=True)

    names = await page.locator("#profile .vector h3").all_inner_texts()
    assert names == ["verbosity", "exploratory", "interrogative"]
    example = page.locator("#profile .examples tr", has_text="You should always do this")
    assert await example.locator(".figure").inner_text() == "0.00"

    limits = await page.locator("section[aria-labelledby=limits]").inner_text()
    assert "ends with any question scores 1.00" in limits

    row = page.locator("#validity-table tr", has_text="mrbench: mistake-id")
    await row.wait_for()
    cells = await row.locator("td").all_inner_texts()
    assert (cells[0], cells[3]) == ("1386", "notice")

    await page.locator("summary", has_text="socratic-v2").click()
    formula = page.locator("#other-profiles .weighing", has_text="withholding").first
    await formula.wait_for()
    assert "The overall score of a response is (asking" in await formula.inner_text()
    assert await width_of(page) <= viewport["width"]


async def test_a_text_is_scored_with_its_markers_in_place_and_the_arithmetic_written_out(
    visit: Visit,
):
    page = await visit("/methodology.html")
    text = "😀 Perhaps. You might ask, and could; <b>always</b>. What then?"
    await page.locator("#text").fill(text)
    await page.locator("#score").click()
    await page.locator("#marked", has_text="😀 Perhaps").wait_for()

    marks = await page.locator("#marked mark").evaluate_all(
        "marks => marks.map(mark => [mark.className, mark.textContent])"
    )
    assert await page.locator("#marked").text_content() == text
    assert await page.locator("#marked b").count() == 0
    assert marks == [
        ["raises", "Perhaps"],
        ["raises", "might"],
        ["raises", "could"],
        ["lowers", "always"],
    ]
    assert await page.locator("#marked .passage").all_inner_texts() == ["What then?"]
    figures = await page.locator("#figures").inner_text()
    assert "(3 - 1) / 4 = 0.50; (0.50 + 1) / 2 = 0.75" in figures


async def test_markers_of_the_two_kinds_differ_in_form_as_well_as_in_colour(visit: Visit):
    page = await visit("/methodology.html")
    await page.locator("#marked mark").first.wait_for()

    borders = {
        kind: await page.locator(f"#marked mark.{kind}").first.evaluate(
            "mark => [getComputedStyle(mark).borderTopStyle, getComputedStyle(mark).color]"
        )
        for kind in ("raises", "lowers")
    }

    assert borders["raises"][0] == "none"
    assert borders["lowers"][0] == "solid"
    assert borders["raises"][1] != borders["lowers"][1]


async def test_an_unscored_text_has_dashes_and_no_zeros(visit: Visit):
    page = await visit("/methodology.html")
    await page.locator("#status").select_option("refused")
    await page.get_by_text("unscored, which is not zero").wait_for()

    figures = await page.locator("#figures dd.figure").all_inner_texts()
    assert figures == ["–"] * 4


async def test_what_cannot_be_scored_is_said_in_the_apis_words(visit: Visit):
    page = await visit("/methodology.html", quiet=False)
    await page.locator("#tokens").fill("-5")

    await page.get_by_text("output_tokens: ").wait_for()


async def test_a_vector_that_does_not_apply_has_a_dash_and_enters_no_mean(visit: Visit):
    page = await visit("/methodology.html")
    await page.locator("#figures dd.figure").first.wait_for()

    async def partly(route: Route) -> None:
        answer = await (await route.fetch()).json()
        answer["evidence"]["facts"]["verbosity"] = {
            "values": {},
            "sentence": "does not apply: nothing was said before",
            "word": None,
        }
        await route.fulfill(json={**answer, "verbosity": None, "exploratory": 0.5, "overall": 0.75})

    await page.route("**/api/score", partly)
    await page.locator("#score").click()
    await page.get_by_text("does not apply: nothing was said before").wait_for()

    figures = await page.locator("#figures dd.figure").all_inner_texts()
    assert figures == ["–", "0.50", "1.00", "0.75"]
    assert "mean of 0.50, 1.00" in await page.locator("#figures").inner_text()


async def test_an_interval_is_computed_step_by_step_on_written_scores(visit: Visit):
    page = await visit("/methodology.html#interval")
    steps = page.locator("#interval-steps")
    await steps.get_by_text("which is 0.61 to 0.91").wait_for()
    told = await steps.inner_text()
    for part in ("The mean m of the 10 runs is 0.80", "5/4 · 0.260 / 10² = 0.00325", "= 49.2"):
        assert part in told

    await page.locator("#own-scores").fill("1\n0\n1")
    await steps.get_by_text("An interval needs 5 scenarios; 3 scenarios have a score.").wait_for()
    assert "which is" not in await steps.inner_text()


async def test_a_wrong_score_is_named_with_its_scenario(visit: Visit):
    page = await visit("/methodology.html", quiet=False)
    await page.locator("#own-scores").fill("0.5\n7")
    await page.get_by_text("scenario 2: '7' is no number from 0 to 1").wait_for()
    await page.locator("#own-scores").fill(" ")
    await page.get_by_text("scores: hold no number").wait_for()


async def test_the_steps_of_a_model_lead_to_the_interval_of_the_ranking(
    store: SqlStore, visit: Visit, address: str
):
    planned = experiment(tutors(3))
    await seed(store, planned)
    model = (await models_at(address))[1]
    page = await visit("/methodology.html")
    await page.locator("#interval-experiment").select_option(planned.experiment_id)
    await page.locator("#interval-model").select_option(model["model_id"])
    await page.locator("#interval-vector").select_option("interrogative")
    low, high = model["vectors"]["interrogative"]["interval"]
    await page.get_by_text(f"which is {low:.2f} to {high:.2f}").wait_for()

    assert "vector=interrogative" in page.url
    await page.reload()
    await page.get_by_text(f"which is {low:.2f} to {high:.2f}").wait_for()
    assert await findings(page) == []
    assert await width_of(page) <= DESKTOP["width"]


async def test_a_text_is_scored_by_another_profile(visit: Visit):
    page = await visit("/methodology.html")
    await page.locator("#score-profile").select_option("socratic-v2")
    await page.locator("#student").fill("I think the moon is made of cheese.")

    await page.locator("#figures").get_by_text("withholding").first.wait_for()
