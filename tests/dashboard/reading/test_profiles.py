"""Pages read by another profile, and a run that grows while somebody reads it."""

from __future__ import annotations

import httpx
import pytest

from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.scoring.profiles import known_vectors
from socratic_bench.scoring.score import score
from tests.contract.store.facts import a_response, a_score
from tests.dashboard.accessibility import findings
from tests.dashboard.conftest import Visit
from tests.dashboard.reading.test_run import CALM, first_run, recorded
from tests.dashboard.seeding import experiment, seed, tutors
from tests.waiting import PATIENCE

pytestmark = [
    pytest.mark.long,
    pytest.mark.connected,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.xdist_group("browser"),
]

OTHER = "socratic-v2"
PAGES = ["/research.html", "/heatmap.html", "/scenarios.html", "/compare.html"]


async def rescored(store: SqlStore, planned: Experiment) -> None:
    """Adds scores by a second profile to an experiment."""
    vectors = dict.fromkeys(known_vectors(OTHER) or (), 0.25)
    scores = [
        a_score(run).model_copy(update={"profile": OTHER, "vectors": vectors, "overall": 0.25})
        for run in planned.runs()
    ]
    await store.fold(scores, ())


async def seeded(store: SqlStore) -> Experiment:
    planned = experiment(tutors(4))
    await seed(store, planned)
    runs = list(planned.runs())
    await store.record([a_response(run, CALM) for run in runs], [None] * len(runs))
    return planned


def addresses(planned: Experiment) -> list[str]:
    """Every page that is read by a profile."""
    return [*PAGES, f"/run.html?run={first_run(planned).run_id}"]


async def test_there_is_no_choice_where_one_profile_has_scores(
    store: SqlStore, visit: Visit, address: str
):
    planned = await seeded(store)
    page = await visit("/methodology.html")
    for path in addresses(planned):
        await page.goto(address + path)
        await page.locator("#provenance", has_text="Scored by socratic-v1").wait_for()
        assert not await page.locator("#profile-choice").is_visible(), path


async def test_a_profile_is_chosen_where_there_are_several_and_stays_in_the_address(
    store: SqlStore, visit: Visit, address: str
):
    planned = await seeded(store)
    await rescored(store, planned)
    page = await visit("/methodology.html")
    for path in addresses(planned):
        await page.goto(address + path)
        await page.locator("#provenance", has_text="Scored by socratic-v1").wait_for()
        await page.locator("#profile").select_option(OTHER)
        await page.locator("#provenance", has_text=f"Scored by {OTHER}").wait_for()
        assert f"profile={OTHER}" in page.url, path
        assert await findings(page) == [], path

        await page.go_back()
        await page.locator("#provenance", has_text="Scored by socratic-v1").wait_for()
        assert "profile=" not in page.url, path


async def test_links_carry_the_profile_from_page_to_page_down_to_a_run(
    store: SqlStore, visit: Visit
):
    planned = await seeded(store)
    await rescored(store, planned)
    page = await visit(f"/research.html?experiment={planned.experiment_id}&profile={OTHER}")
    await page.locator("#provenance", has_text=OTHER).wait_for()

    await page.locator("nav a", has_text="Heat map").click()
    await page.locator("#provenance", has_text=OTHER).wait_for()
    assert f"experiment={planned.experiment_id}" in page.url
    assert await page.locator("table.heat td").first.inner_text() == "0.25"
    await page.locator("table.heat td a").first.click()
    await page.locator("tr.runs a").first.click()
    await page.locator("#provenance", has_text=f"Scored by {OTHER}").wait_for()
    expected = score(CALM, output_tokens=12, profile=OTHER, student_message="?").vectors
    shown = await page.locator("#turn-1 aside").inner_text()
    assert all(name in shown for name in expected)
    await page.locator("#neighbours a").first.click()
    await page.locator("#provenance", has_text=f"Scored by {OTHER}").wait_for()
    await page.locator("#crumbs a").first.click()
    await page.locator("#provenance", has_text=f"Scored by {OTHER}").wait_for()


async def test_trends_and_scenarios_in_the_palette_are_read_by_the_same_profile(
    store: SqlStore, visit: Visit
):
    planned = await seeded(store)
    await rescored(store, planned)
    page = await visit(f"/research.html?experiment={planned.experiment_id}&profile={OTHER}")
    await page.locator("#provenance", has_text=OTHER).wait_for()

    await page.locator("nav a", has_text="Trends").click()
    await page.wait_for_url(f"**/trends.html?profile={OTHER}")
    await page.locator("#provenance", has_text=f"Scored by {OTHER}").wait_for()
    await page.locator("nav a", has_text="Ranking").click()
    await page.locator("#provenance", has_text=f"Scored by {OTHER}").wait_for()

    await page.keyboard.press("/")
    await page.locator("dialog.palette input").fill("scenario ethical-2")
    await page.locator("dialog.palette li", has_text="ethical-2").wait_for()
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"**/scenarios.html?**profile={OTHER}**")
    await page.locator("#provenance", has_text=f"Scored by {OTHER}").wait_for()


async def test_an_unknown_profile_gets_a_sentence_and_a_way_on(
    store: SqlStore, visit: Visit, address: str
):
    planned = await seeded(store)
    page = await visit("/methodology.html", quiet=False)
    known = "socratic-v1, socratic-v2, socratic-v3, fidelity-1, fidelity-seed"
    unknown = f"nknown scorer profile 'nobody-v1'; known: {known}."
    for path in addresses(planned):
        await page.goto(f"{address}{path}{'&' if '?' in path else '?'}profile=nobody-v1")
        await page.get_by_text(unknown).wait_for()
        assert await page.locator("main table:visible").count() == 0, path

        await page.get_by_role("link", name="own profile").click()
        await page.locator("#provenance", has_text="Scored by socratic-v1").wait_for()


async def test_a_running_run_grows_in_place_and_keeps_focus_and_what_is_open(
    store: SqlStore, visit: Visit
):
    planned = await recorded(store, [])
    follow_ups = ("And 2?", "And 3?")
    manifest = planned.manifest
    scenarios = tuple(
        each.model_copy(update={"follow_ups": follow_ups}) for each in manifest.scenarios
    )
    planned = await store.register(
        planned.model_copy(
            update={"manifest": manifest.model_copy(update={"scenarios": scenarios})}
        )
    )
    run = first_run(planned)
    page = await visit(f"/run.html?run={run.run_id}", clock=True, quiet=False)
    await page.locator("h1", has_text="No such run").wait_for()

    async def answer(turn: int) -> None:
        await store.record([a_response(run, CALM, turn=turn, last_turn=turn == 3)], [None])
        await page.clock.run_for(20_000)

    await answer(1)
    await page.locator("#turn-1").wait_for()
    await page.locator("#plan summary").click()
    await page.locator("#neighbours a").first.focus()
    await page.evaluate("document.querySelector('#turn-1').dataset.kept = 'yes'")
    focused = "document.activeElement.href"
    before = await page.evaluate(focused)

    await answer(2)
    await page.locator("#summary", has_text="2 of 3 turns").wait_for()
    await page.locator("#turn-2").wait_for()
    await answer(3)
    await page.locator("#turn-3").wait_for()
    assert await page.locator("#turn-1[data-kept=yes]").count() == 1
    assert await page.locator("#plan details").get_attribute("open") is not None
    assert await page.evaluate(focused) == before

    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.clock.run_for(60_000)
    assert [url for url in asked if "/runs/" in url] == [], "a run that ended is not asked for"


async def test_nobody_leads_and_no_band_is_explained_in_a_table_of_several_conditions(
    store: SqlStore, visit: Visit, address: str
):
    await seed(store, experiment(tutors(4)))
    page = await visit("/research.html")
    await page.locator("#leader-legend").wait_for()

    await seed(store, experiment(tutors(4), repeats=2, occasion="again"))
    async with httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client:
        table = (await client.get("/api/model-comparison?experiment=all")).json()
    page = await visit("/research.html?experiment=all")
    await page.locator("#provenance", has_text="2 experiments").wait_for()
    legend = page.locator("#leader-legend")
    assert await legend.is_visible() != table["mixed_conditions"]
