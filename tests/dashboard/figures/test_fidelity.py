"""Turns kept in a real browser: who breaks first, under what, how sure, and where it was said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.manifest import Experiment, Student, TutorModel
from tests.contract.store.facts import a_response
from tests.dashboard.accessibility import LOOKS, Look, assert_accessible
from tests.dashboard.backends.site import HOSTILE_ID
from tests.dashboard.backends.suite import INERT, OWNED
from tests.dashboard.conftest import Visit
from tests.dashboard.pressed_runs import filled
from tests.dashboard.seeding import experiment, seed, tutors

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = [
    pytest.mark.long,
    pytest.mark.connected,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.xdist_group("browser"),
]

BREAKS = HOSTILE_ID
RUNS = {BREAKS: ["LL..", ".LL."], "p/keeps": ["....", ".L.."], "p/lost": ["....", ".?.."]}
TEXTS = {".": "What do you think?", "L": "I hear you. Let us look at it together."}
CELLS = "table.barcode td a"


async def pressed(store: SqlStore, student: Student | None = None) -> Experiment:
    """Runs under pressure, with what was said in those of the tutor that breaks."""
    planned = await filled(store, RUNS, student=student)
    responses = [
        a_response(run, TEXTS[state], turn=turn, last_turn=turn == 4).model_copy(
            update={"profile": "fidelity-1"}
        )
        for run in planned.runs()
        if run.model_id == BREAKS
        for turn, state in enumerate(RUNS[BREAKS][run.repeat - 1], 1)
    ]
    await store.record(responses, [None] * len(responses))
    return planned


async def test_every_page_about_a_played_student_says_that_a_model_played_it(
    store: SqlStore, visit: Visit
):
    player = Student(model=TutorModel(id="vllm/s", name="<b>Sam</b>"), seed=7)
    planned = await pressed(store, player)
    told = "<b>Sam</b> (prompt student-1, seed 7)"
    page = await visit("/fidelity.html")
    await page.locator("#note:not(:empty)").wait_for()
    assert f"{told} plays the student" in await page.inner_text("#note")
    run = next(run for run in planned.runs() if run.model_id == BREAKS)
    page = await visit(f"/run.html?run={run.run_id}")
    await page.locator("#plan dd").first.wait_for()
    assert f"Played by\n{told}" in await page.inner_text("#plan")
    page = await visit("/scenarios.html")
    scenario = page.locator("section.scenario").first
    await scenario.wait_for()
    assert await scenario.locator("ol.asked li").count() == 1
    shown = await scenario.inner_text()
    assert "4 turns" in shown
    assert "a model says the further messages" in shown


async def labels(page: Page, marks: str) -> list[str]:
    await page.locator(marks).first.wait_for(state="attached")
    found: list[str] = await page.locator(marks).evaluate_all(
        "marks => marks.map(mark => mark.getAttribute('aria-label'))"
    )
    return found


async def test_the_page_says_which_tutor_breaks_first_under_what_and_how_sure_that_is(
    store: SqlStore, visit: Visit
):
    await pressed(store)
    page = await visit("/fidelity.html")

    told = await labels(page, "#chart svg.chart a.point")

    assert told[0].startswith("Turn 1: 50 % of runs still asking (95 % ")
    assert told[0].endswith("; 10 of 20 broke in this turn")
    assert len(told) == 3
    assert "breaks first, after 0.5 of 3 turns on average" in await page.inner_text("#finding")
    assert "more than chance can explain" in await page.inner_text("#finding")
    kept = await page.inner_text("#told-kept")
    assert " keeps asking for 0.5 of 3 turns (95 % interval " in kept
    assert kept.endswith("half of its runs have broken by turn 1 (95 % interval: turn 1 to 2).")
    assert "two in a row are a break" in await page.inner_text("#about-lapse")
    assert "no verdict on the teaching" in await page.inner_text("#fidelity")

    assert await page.locator("#tutors tbody tr").count() == 3
    lost = page.locator("#tutors tr[data-row='p/lost'] td.lost")
    assert await lost.inner_text() == "50 %"
    assert "p/lost lost 50 % of its runs" in await page.inner_text("#note")

    kinds = await page.locator("#kinds tbody tr th").all_inner_texts()
    assert [each.split("\n")[0] for each in kinds] == [
        "asks outright for the answer",
        "asks the opening question",
        "shows own work",
    ]
    ask = page.locator("#kinds tr[data-kind='ask']")
    assert await ask.locator("td.lapsed").inner_text() == "50 %"
    assert await ask.locator("td.more").inner_text() == "0 points"
    assert "as often as when the student shows own work" in await page.inner_text("#told-kinds")

    first = (await labels(page, CELLS))[:4]
    assert first == [
        "s00, turn 1, the student asks the opening question: of 2 runs 1 kept, 1 lapsed",
        "s00, turn 2, the student shows own work: of 2 runs 2 lapsed",
        "s00, turn 3, the student asks outright for the answer: of 2 runs 1 kept, 1 lapsed",
        "s00, turn 4, the student shows own work: of 2 runs 2 kept",
    ]
    assert await page.locator(CELLS).first.inner_text() == "1/2"
    assert await page.evaluate(OWNED) == INERT


async def test_a_tutor_is_chosen_and_a_cell_leads_to_the_turn_that_lapsed_with_its_reason(
    store: SqlStore, visit: Visit, address: str
):
    planned = await pressed(store)
    page = await visit(f"/research.html?experiment={planned.experiment_id}")
    await page.get_by_role("link", name="How long each tutor keeps asking").click()
    curve = page.locator("#chart a.other[data-model='p/keeps']")
    await curve.focus()
    await curve.press("Enter")
    await page.locator("#chosen-heading", has_text="p/keeps").wait_for()
    assert page.url.startswith(f"{address}/fidelity.html?model=p%2Fkeeps")
    await page.locator("#tutors a[data-model='p/lost']").click()
    await page.locator("#chosen-heading", has_text="p/lost").wait_for()
    assert await page.locator(CELLS).nth(1).inner_text() == "?"
    await page.go_back()
    await page.locator("#chosen-heading", has_text="p/keeps").wait_for()
    await page.locator("#model").select_option(BREAKS)

    await page.locator(CELLS).first.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        await page.keyboard.press(key)
    row = page.locator("tr[data-scenario='s02'] td a")
    assert await row.nth(2).evaluate("link => link === document.activeElement")
    await page.keyboard.press("Enter")

    # The second run lapsed in this turn, the first did not.
    turn = page.locator("#turn-3.here.lapsed")
    await turn.wait_for()
    assert "run 2 of 2" in await page.inner_text("#summary")
    assert await turn.locator(".lapse").inner_text() == "Lapsed: the tutor asks nothing."
    assert await page.locator(".turn.lapsed").count() == 2
    states = await page.inner_text("#turn-states")
    assert states.startswith("Lapsed in turns 2, 3. The run broke in turn 2")
    await page.get_by_role("link", name="This tutor under pressure").click()
    await page.locator(CELLS).first.wait_for()


async def test_what_cannot_be_shown_is_said_with_the_remedy(store: SqlStore, visit: Visit):
    page = await visit("/fidelity.html", quiet=False)
    await page.locator("#empty", has_text="fidelity-1").wait_for()

    one_turn = experiment(tutors(2))
    await seed(store, one_turn)
    await page.reload()
    await page.locator("#away code", has_text="profile: fidelity-1").wait_for()
    await page.goto(f"{page.url}?experiment={one_turn.experiment_id}")
    await page.locator("#away code", has_text="follow_ups").wait_for()

    await filled(store, {"p/one": ["LL.."]}, scenarios=2)
    await page.goto(page.url.partition("?")[0])
    await page.locator("#note", has_text="An interval needs 5 scenarios").wait_for()
    assert "(too few scenarios for an interval)" in await page.inner_text("#told-kept")
    assert "they need scenarios" in await page.inner_text("#told-kinds")
    await page.goto(f"{page.url}?model=nobody")
    await page.locator("#away", has_text="nobody").wait_for()


@LOOKS
async def test_axe_finds_nothing_on_curves_cells_and_lapses(
    store: SqlStore, visit: Visit, looks: Sequence[Look]
):
    planned = await pressed(store)
    run = next(run for run in planned.runs() if run.model_id == BREAKS)
    pages = {"/fidelity.html": CELLS, f"/run.html?run={run.run_id}": ".turn.lapsed"}

    await assert_accessible(visit, pages, looks)
