"""The research page while an experiment runs, without results, and without the API."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.manifest import Experiment, Manifest
from tests.dashboard.conftest import Visit
from tests.dashboard.research_page import AWAY_MS, MODEL_ROWS, RUNNING_MS, rows_of, wind_on
from tests.dashboard.seeding import MONDAY, SCENARIOS, experiment, seed, tutors

pytestmark = [
    pytest.mark.connected,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.xdist_group("browser"),
]


async def test_without_results_it_says_which_command_to_run(visit: Visit):
    page = await visit("/")
    await page.locator("#empty").wait_for()

    assert "make demo" in await page.locator("#empty").inner_text()
    assert not await page.locator("#ranking").is_visible()


async def test_a_running_experiment_shows_its_progress_and_fills_in_place(
    store: SqlStore, visit: Visit
):
    planned = experiment(tutors(3))
    await seed(store, planned, share=0.4)
    page = await visit("/", clock=True)
    await page.get_by_text("54 of 135 runs done (40 %)").wait_for()
    first = page.locator(MODEL_ROWS).first
    await first.locator("button").click()
    await first.evaluate("row => { row.seenBefore = true; }")

    await seed(store, planned)
    complete = page.locator("#summary", has_text="135 runs")
    await wind_on(page, complete.is_visible, "the page to show all runs", milliseconds=RUNNING_MS)

    assert not await page.locator("#progress").is_visible()
    kept = "rows => rows.some(row => row.seenBefore)"
    assert await page.locator(MODEL_ROWS).evaluate_all(kept)
    assert await page.locator("tr.detail:not([hidden])").count() == 1
    assert await page.locator("#updated time").get_attribute("datetime")


async def test_an_experiment_out_of_budget_says_so_until_there_is_none(
    store: SqlStore, visit: Visit
):
    planned = experiment(tutors(3))
    poor = planned.model_copy(
        update={"manifest": planned.manifest.model_copy(update={"budget": Decimal(1)})}
    )
    await seed(store, poor, share=0.4)
    await store.exhaust(poor.experiment_id, 10**18)
    page = await visit("/", clock=True)
    await page.get_by_text("Out of budget: 54 of 135 runs done (40 %). Raise the budget").wait_for()

    await seed(store, planned, share=0.6)
    past = page.get_by_text("Past the deadline: 81 of 135 runs done (60 %).")
    await wind_on(page, past.is_visible, "what the page says past the deadline")


async def test_an_api_that_is_away_is_said_and_the_old_figures_stay(store: SqlStore, visit: Visit):
    await seed(store, experiment(tutors(3)), share=0.5)
    page = await visit("/", quiet=False, clock=True)
    before = await rows_of(page)

    await page.route("**/api/**", lambda route: route.abort())
    silent = page.get_by_text("The API does not answer.")
    await wind_on(page, silent.is_visible, "the page to miss the API")

    assert await rows_of(page) == before
    assert "those of" in await page.locator("#away").inner_text()
    assert await page.locator("body.stale").count() == 1
    await page.unroute("**/api/**")
    await wind_on(
        page, page.locator("#away").is_hidden, "the page to find the API", milliseconds=AWAY_MS
    )
    assert await page.locator("body.stale").count() == 0


async def test_experiments_are_chosen_and_a_mixed_table_says_so(store: SqlStore, visit: Visit):
    first = experiment(tutors(4))
    manifest = Manifest(
        models=tuple(tutors(2)),
        scenarios=SCENARIOS,
        system_prompt="Lecture.",
        name="Prompt B",
    )
    later = Experiment(manifest=manifest, created_at=MONDAY + timedelta(days=7))
    await seed(store, first)
    await seed(store, later)
    page = await visit("/")
    await page.get_by_text("[other test conditions]").wait_for()
    assert "Prompt B" in await page.locator("#summary").inner_text()

    await page.locator("#experiment").select_option("all")
    await page.get_by_text("2 sets of test conditions").wait_for()
    assert len(await rows_of(page)) == 6
    assert await page.locator("th small", has_text="Prompt B").count() == 2
    assert await page.get_by_text("ties with leader").count() == 0, "no tie across conditions"
    assert await page.locator("#finding").inner_text() == "", "no model leads in a mixed table"
    await page.locator("#experiment option", has_text="Prompt B").wait_for(state="attached")

    await page.locator("#experiment").select_option(first.experiment_id)
    await page.locator("#note").wait_for(state="hidden")
    assert " has the highest score, " in await page.locator("#finding").inner_text()

    await page.locator("#summary", has_text="180 runs").wait_for()
    assert f"experiment={first.experiment_id}" in page.url
    await page.go_back()
    await page.get_by_text("2 sets of test conditions").wait_for()


async def test_an_experiment_that_is_not_there_is_said(visit: Visit):
    page = await visit("/?experiment=exp-nowhere", quiet=False)

    await page.get_by_text("there is no experiment 'exp-nowhere'").wait_for()
