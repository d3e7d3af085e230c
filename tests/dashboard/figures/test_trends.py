"""Scores over time in a real browser: what joins, what breaks, and the sentences of the tests."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.manifest import Experiment, Manifest
from socratic_bench.results.trends.timeseries import timeseries
from tests.contract.store.facts import a_response, a_score, record_unleased
from tests.dashboard.accessibility import assert_accessible
from tests.dashboard.conftest import Visit
from tests.dashboard.pressed_runs import TWO, filled
from tests.dashboard.seeding import MONDAY, SCENARIOS, seed, tutors

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = [
    pytest.mark.long,
    pytest.mark.connected,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.xdist_group("browser"),
]

WEEK = timedelta(weeks=1)
MODEL = "provider-1/tutor-1"
POINTS = "#chart svg.chart a"


async def weeks(store: SqlStore, number: int, models: int = 4, changed: int | None = None) -> None:
    """An experiment a week: `changed` is the first of another version, the next of a prompt."""
    for week in range(number):
        is_new = changed is not None and week >= changed
        manifest = Manifest(
            models=tutors(models),
            scenarios=SCENARIOS,
            repeats=1,
            system_prompt="Ask." if changed is not None and week > changed else "Help.",
        )
        created_at = MONDAY + week * WEEK
        planned = Experiment(manifest=manifest, occasion=f"week {week}", created_at=created_at)
        await seed(store, planned, failing=0)
        version = {"model_version": "new-1" if is_new else "old-1"}
        runs = [run for run in planned.runs() if run.model_id == MODEL]
        await record_unleased(store, [a_response(run).model_copy(update=version) for run in runs])


async def stepped(store: SqlStore, number: int, step: float = 0.2) -> None:
    """An experiment a week; from the middle on the scores are lower by a step."""
    rng = random.Random(4)
    for week in range(number):
        manifest = Manifest(models=tutors(3), scenarios=SCENARIOS, repeats=1)
        created_at = MONDAY + week * WEEK
        planned = Experiment(manifest=manifest, occasion=f"week {week}", created_at=created_at)
        await store.register(planned)
        level = rng.gauss(0.8, 0.02) - step * (week >= number // 2)
        await store.fold([a_score(run, overall=level) for run in planned.runs()], [])


async def points_of(page: Page) -> list[str]:
    await page.locator(POINTS).first.wait_for(state="attached")
    told: list[str] = await page.locator(POINTS).evaluate_all(
        "points => points.map(point => point.getAttribute('aria-label'))"
    )
    return told


async def test_a_line_breaks_where_the_benchmark_changed_and_both_changes_are_said(
    store: SqlStore, visit: Visit
):
    await weeks(store, 7, changed=3)
    [series] = (await timeseries(store, MODEL)).models
    page = await visit(f"/trends.html?model={MODEL}")

    told = await points_of(page)

    assert len(told) == 7
    assert "the benchmark changed (prompt or parameters)" in told[4]
    assert "from the point before, which may be chance" in told[3]
    lines = await page.locator("#chart path.trend-line").evaluate_all(
        "lines => lines.map(line => line.getAttribute('d').split('L').length)"
    )
    assert lines == [4, 3]
    assert await page.locator("#chart .label.letter").all_text_contents() == ["A", "B"]
    version, benchmark = await page.locator("#told-changes li").all_inner_texts()
    [change] = series.version_changes
    assert version.startswith("A ")
    assert f"reports new-1 instead of old-1. {change.finding}" in version
    assert benchmark.startswith("B ")
    assert "the benchmark changed (prompt or parameters)" in benchmark


async def test_a_change_point_stands_in_the_band_of_its_date(store: SqlStore, visit: Visit):
    await stepped(store, 10)
    [series] = (await timeseries(store, MODEL)).models
    [point] = series.change_points
    page = await visit(f"/trends.html?model={MODEL}")
    await points_of(page)

    [told] = await page.locator("#told-changes li").all_inner_texts()
    assert told == f"A {point.finding}"
    assert await page.locator("#chart .change.change-point").count() == 1
    assert await page.locator("#chart .date-band").count() == 1
    marked = page.locator("tbody tr", has_text="a change point")
    assert await marked.get_attribute("data-experiment") == point.experiment_id


async def test_a_date_is_chosen_and_compares_the_points_on_both_sides(
    store: SqlStore, visit: Visit, address: str
):
    await stepped(store, 6)
    page = await visit(f"/trends.html?model={MODEL}")
    await points_of(page)

    await page.locator("#changed").fill("2026-03-20")
    told = page.locator("#told-changes li.named")
    await told.wait_for()

    assert "less after 2026-03-20 than before (95 % " in await told.inner_text()
    assert await page.locator("#chart .change.named").count() == 1
    assert page.url == f"{address}/trends.html?model=provider-1%2Ftutor-1&changed=2026-03-20"


async def test_a_trend_is_told_as_the_api_tells_it(store: SqlStore, visit: Visit):
    await weeks(store, 5)
    [series] = (await timeseries(store, MODEL)).models
    page = await visit(f"/trends.html?model={MODEL}")
    await points_of(page)

    trend, detectable = await page.locator("#told-trends li").all_inner_texts()

    assert trend.endswith(series.trends[0].finding)
    assert detectable.endswith(series.detectable_changes[0].finding)


async def test_turns_kept_or_one_turn_is_chosen_and_drawn_on_its_own_scale(
    store: SqlStore, visit: Visit, address: str
):
    worse = {"p/breaks": ["....", "...."], "p/keeps": ["....", ".?.."]}
    for week in range(9):
        await filled(store, worse if week < 4 else TWO, week=week)
    [series] = (await timeseries(store, "p/breaks", figure="turns-kept")).models
    [point] = series.change_points
    page = await visit("/trends.html?model=p/breaks")
    await points_of(page)
    assert await page.locator("#figure option").all_text_contents() == [
        *("Score", "kept", "Turns kept")
    ]

    await page.locator("#figure").select_option("turns-kept")
    await page.locator("#chart .label", has_text="Turns kept").wait_for()

    assert page.url == f"{address}/trends.html?model=p%2Fbreaks&figure=turns-kept"
    told = await points_of(page)
    assert ": 3.00 (95 % 2." in told[3]
    assert ": 0.50 (95 % 0." in told[4]
    assert "\u22122.50 from the point before, these two experiments differ" in told[4]
    ticks = await page.locator("#chart .label.quiet").all_text_contents()
    assert [each for each in ticks if each[0] in "-0123."][:4] == ["0", "1", "2", "3"]
    [mark] = await page.locator("#told-changes li").all_inner_texts()
    assert mark == f"A {point.finding}"
    assert "Falls by 2.50 turns between" in mark
    assert "two in a row are a break." in await page.locator("#notes").inner_text()
    assert await page.locator("th.score").inner_text() == "Turns kept"
    assert await page.locator("#turn-choice").is_hidden()

    await page.goto(f"{address}/trends.html?model=p/keeps&figure=turns-kept")
    assert "50 % of the runs lost" in (await points_of(page))[0]

    await page.locator("#figure").select_option("kept")
    await page.locator("#turn").select_option("2")
    await page.locator("#chart .label", has_text="kept, turn 2").wait_for()
    assert ": 0.50 (95 % 0." in (await points_of(page))[4]
    await page.locator("#dimension").select_option("student")
    await page.locator("#notes", has_text="turn 2 of dimension student alone").wait_for()


async def test_a_figure_that_is_not_there_shows_no_other_one(store: SqlStore, visit: Visit):
    await weeks(store, 2)
    page = await visit("/trends.html?figure=turns-kept", quiet=False)

    await page.locator("#away", has_text="no experiment has a scenario of several turns").wait_for()

    assert await page.locator("#trends").is_hidden()


async def test_tutors_are_chosen_by_link_or_list_and_stand_in_the_address(
    store: SqlStore, visit: Visit, address: str
):
    await weeks(store, 2, models=12)
    page = await visit("/trends.html")
    await points_of(page)
    assert await page.locator("#multiples li").count() == 12

    await page.locator("#filter").fill("tutor-3")
    assert await page.locator("#multiples li").count() == 1
    await page.locator("#multiples a").click()
    await page.locator("#chosen-heading", has_text="Tutor 3").wait_for()
    assert page.url == f"{address}/trends.html?model=provider-3%2Ftutor-3&q=tutor-3"
    await page.go_back()
    await page.locator("#chosen-heading", has_text="Tutor 3").wait_for(state="detached")
    await page.locator("#model").select_option("reference/lecturer")
    await page.locator("#chosen-heading", has_text="Lecturer").wait_for()

    assert await page.locator("#chosen-heading .tag", has_text="reference").count() == 1
    assert await page.locator(f"{POINTS} .dot.reference").count() == 2
    await page.locator(POINTS).last.focus()
    await page.keyboard.press("Enter")
    await page.locator("tr.detail:not([hidden])").first.wait_for()
    assert "open=reference%2Flecturer" in page.url


async def test_one_week_alone_and_no_week_say_what_to_do(store: SqlStore, visit: Visit):
    page = await visit("/trends.html")
    await page.locator("#empty").wait_for()

    await weeks(store, 1)
    page = await visit("/trends.html")
    assert len(await points_of(page)) == 1
    assert "with another occasion" in await page.locator("#lone").inner_text()


async def test_an_unknown_tutor_is_named(visit: Visit):
    page = await visit("/trends.html?model=nobody", quiet=False)

    await page.get_by_text("no experiment has a model 'nobody'").wait_for()


async def test_axe_finds_nothing_on_the_page_of_trends(store: SqlStore, visit: Visit):
    await weeks(store, 6, models=6, changed=2)

    for week in range(2):
        await filled(store, TWO, week=week)

    shown = {f"/trends.html?model={MODEL}": POINTS}
    shown["/trends.html?model=p/breaks&figure=turns-kept"] = POINTS
    await assert_accessible(visit, shown)
