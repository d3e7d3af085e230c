"""The page of scenarios."""

from __future__ import annotations

import pytest

from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.manifest import Experiment, Manifest
from socratic_bench.domain.scenario import Scenario
from tests.contract.store.facts import a_response
from tests.dashboard.conftest import PHONE, Visit
from tests.dashboard.research_page import width_of
from tests.dashboard.seeding import MONDAY, experiment, seed, tutors

pytestmark = [
    pytest.mark.connected,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.xdist_group("browser"),
]
HOSTILE = "<img src=x onerror=\"document.title='owned'\">\u202ereversed"


async def test_the_hardest_come_first_where_they_are_wanted_and_lead_to_their_runs(
    store: SqlStore, visit: Visit
):
    planned = experiment(tutors(8))
    await seed(store, planned, failing=0.0)
    runs = list(planned.runs())
    await store.record([a_response(run) for run in runs], [None] * len(runs))
    page = await visit("/scenarios.html")
    await page.locator("#overview tbody tr").first.wait_for()

    await page.select_option("#order", "hardest")
    means = await page.locator("#overview tbody tr td:nth-child(4)").all_inner_texts()
    await page.locator(".scenario details").first.locator("summary").click()
    await page.locator(".scenario .runs a").first.wait_for()

    assert means == sorted(means)
    assert page.url.endswith("order=hardest")
    assert "run.html?run=" in str(await page.locator(".runs a").first.get_attribute("href"))
    assert await page.locator(".scenario .runs li").count() == 24


async def test_what_a_student_says_is_text_turn_by_turn_and_fits_a_phone(
    store: SqlStore, visit: Visit
):
    scenario = Scenario(
        id="a b/c?d", dimension="ethical", prompt=HOSTILE, follow_ups=("And " + "w" * 300,)
    )
    manifest = Manifest(models=tutors(2), scenarios=(scenario,), repeats=1)
    await store.register(Experiment(manifest=manifest, occasion=None, created_at=MONDAY))
    page = await visit("/scenarios.html", viewport=PHONE)
    await page.locator(".asked li").first.wait_for()

    said = await page.locator(".asked blockquote").all_inner_texts()

    assert said == list(scenario.student_messages)
    assert await page.locator("main img").count() == 0
    assert await width_of(page) == PHONE["width"]


async def test_without_an_experiment_the_page_says_how_to_get_one(visit: Visit):
    page = await visit("/scenarios.html")
    await page.locator("#empty").wait_for()
