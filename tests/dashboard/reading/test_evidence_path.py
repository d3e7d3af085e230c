"""From a row of the ranking to its scenarios, to their runs, and to what was said."""

from __future__ import annotations

import pytest

from socratic_bench.adapters.stores.sql.store import SqlStore
from tests.contract.store.facts import a_response
from tests.dashboard.accessibility import assert_accessible
from tests.dashboard.conftest import Visit
from tests.dashboard.seeding import experiment, seed, tutors

pytestmark = [
    pytest.mark.long,
    pytest.mark.connected,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.xdist_group("browser"),
]

SOCRATIC = "/research.html?open=reference%2Fsocratic"


async def seeded(store: SqlStore) -> None:
    """Cells, and the responses of the first scenario: the second of three is the worst."""
    planned = experiment(tutors(3))
    await seed(store, planned)
    texts = {1: "What might you consider?", 2: "You must rest.", 3: "Perhaps you should rest."}
    runs = [run for run in planned.runs() if run.scenario_id == "ambiguous-1"]
    await store.record([a_response(run, texts[run.repeat]) for run in runs], [None] * len(runs))


async def test_a_row_leads_by_keyboard_to_its_lowest_scenario_worst_run_and_transcript(
    store: SqlStore, visit: Visit
):
    await seeded(store)
    page = await visit("/research.html")
    await page.locator("tr.row button", has_text="Socratic tutor").press("Enter")
    rows = page.locator("tr[data-scenario]")
    await rows.first.wait_for()

    scores = [float(text) for text in await rows.locator("td.strong").all_inner_texts()]
    assert len(scores) == 15
    assert scores == sorted(scores)

    await page.locator("tr[data-scenario='ambiguous-1'] button").press("Enter")
    runs = page.locator("tr.runs li")
    await runs.first.wait_for()
    links = await runs.locator("a").all_inner_texts()
    assert links == ["Run 2", "Run 3", "Run 1"]

    await page.reload()
    await runs.first.wait_for()  # the address holds what is open
    await runs.locator("a").first.press("Enter")
    await page.locator("#turn-1", has_text="You must rest.").wait_for()


async def test_scenarios_close_again_and_stay_while_figures_change(store: SqlStore, visit: Visit):
    await seeded(store)
    page = await visit(f"{SOCRATIC}&runs=reference%2Fsocratic%0Aambiguous-1", clock=True)
    runs = page.locator("tr.runs li")
    await runs.first.wait_for()
    await runs.first.evaluate("node => { node.closest('section').dataset.kept = 'yes'; }")

    await seed(store, experiment(tutors(4), occasion="again"))
    await page.clock.run_for(16_000)
    await page.locator("tr.row", has_text="Tutor 2").wait_for()
    assert await page.locator("section[data-kept]").count() == 1

    await page.locator("tr[data-scenario='ambiguous-1'] button").click()
    await page.locator("tr.runs").wait_for(state="detached")
    assert "runs=" not in page.url


async def test_the_scenarios_are_copied_as_csv(store: SqlStore, visit: Visit):
    await seeded(store)
    page = await visit(SOCRATIC, permissions=["clipboard-read", "clipboard-write"])
    await page.locator("tr[data-scenario]").first.wait_for()

    await page.locator(".scenarios .copy").click()
    await page.locator(".scenarios .copy", has_text="Copied").wait_for()

    text = await page.evaluate("navigator.clipboard.readText()")
    head, *lines = text.split("\r\n")
    assert head.startswith("scenario,dimension,overall,verbosity,exploratory,interrogative,scored")
    assert len(lines) == 15 + 1


async def test_axe_finds_nothing_on_scenarios_and_runs(store: SqlStore, visit: Visit):
    await seeded(store)

    path = f"{SOCRATIC}&runs=reference%2Fsocratic%0Aambiguous-1"
    await assert_accessible(visit, {path: "tr.runs li"})
