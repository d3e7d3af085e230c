"""The page of a run in a real browser: marks in place, and text of models as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.manifest import Experiment, Manifest
from socratic_bench.domain.run import Run
from socratic_bench.domain.scenario import Scenario
from socratic_bench.ports.stores.responses import RecordedFailure
from socratic_bench.scoring.score import score
from tests.contract.store.facts import MONDAY, a_failure, a_response
from tests.dashboard.accessibility import assert_accessible
from tests.dashboard.conftest import DESKTOP, Visit
from tests.dashboard.research_page import width_of
from tests.dashboard.seeding import tutors

pytestmark = [
    pytest.mark.long,
    pytest.mark.connected,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.xdist_group("browser"),
]

HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"> "
    "You should \U0001f914 always \u202everride\u202c it. Perhaps consider "
    "\u0645\u0631\u062d\u0628\u0627. "
    "What might you, \U0001f468\u200d\U0001f469\u200d\U0001f467 then, do?"
)
LONG = "You must perhaps consider it. " * 7_000
CALM = "You should rest. What could you try?"


async def recorded(
    store: SqlStore, texts: Sequence[str], *, scenarios: int = 2, title: str = ""
) -> Experiment:
    """An experiment of two tutors whose every run has these turns."""
    follow_ups = tuple(f"And {number}?" for number in range(2, len(texts) + 1))
    planned = Experiment(
        manifest=Manifest(
            models=tutors(3)[1:],
            scenarios=tuple(
                Scenario(
                    id=f"scenario-{number}",
                    dimension="ethical",
                    prompt="Should I?",
                    title=title,
                    follow_ups=follow_ups,
                )
                for number in range(scenarios)
            ),
            repeats=1,
        ),
        created_at=MONDAY,
    )
    await store.register(planned)
    responses = [
        a_response(run, text, turn=turn, last_turn=turn == len(texts)).model_copy(
            update={"attempts": turn}
        )
        for run in planned.runs()
        for turn, text in enumerate(texts, 1)
    ]
    await store.record(responses, [None] * len(responses))
    return planned


def first_run(planned: Experiment) -> Run:
    return next(planned.runs())


async def marks_in(page: Any, turn: int = 1) -> list[tuple[str, int, int]]:
    """The marks of a response: kind, start and end in code points, joined where nodes cut them."""
    found: list[tuple[str, int, int]] = await page.locator(f"#turn-{turn} .response").evaluate(
        """node => {
            const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
            const marks = [];
            let at = 0;
            for (let text = walker.nextNode(); text; text = walker.nextNode()) {
                const end = at + [...text.data].length;
                for (let up = text.parentElement; up !== node; up = up.parentElement) {
                    if (!up.title || up.className === "control") continue;
                    const last = marks.findLast(mark => mark[0] === up.title);
                    if (last && last[2] === at) last[2] = end;
                    else marks.push([up.title, at, end]);
                }
                at = end;
            }
            return marks;
        }"""
    )
    return sorted((kind, start, end) for kind, start, end in found)


@pytest.mark.parametrize("text", [HOSTILE, LONG], ids=["hostile", "200 KB"])
async def test_marks_stand_exactly_where_the_scorer_found_them_and_text_stays_text(
    store: SqlStore, visit: Visit, text: str
):
    planned = await recorded(store, [text], title=HOSTILE)
    page = await visit(f"/run.html?run={first_run(planned).run_id}")
    await page.locator("#turn-1").wait_for()

    spans = score(text).evidence.spans
    kinds = dict.fromkeys(span.kind for span in spans)
    shown = [span for kind in kinds for span in [s for s in spans if s.kind == kind][:1000]]
    expected = sorted((s.kind.replace("_", " "), s.start, s.end) for s in shown)
    assert await marks_in(page) == expected
    assert await page.locator("#turn-1 .response").evaluate("node => node.textContent") == text
    assert await page.locator("main script, main img").count() == 0
    assert "owned" not in (await page.title()).split("·")[-1]
    assert await page.evaluate("document.title.startsWith('<script>')")
    assert await width_of(page) <= DESKTOP["width"]


async def test_controls_of_the_direction_of_text_are_seen_and_turn_nothing(
    store: SqlStore, visit: Visit
):
    planned = await recorded(store, ["a\u202ebc\u202cd"])
    page = await visit(f"/run.html?run={first_run(planned).run_id}")

    control = page.locator("#turn-1 .response .control").first
    await control.wait_for()
    shown = await control.evaluate("node => getComputedStyle(node, '::before').content")
    assert "U+202E" in shown or await control.get_attribute("data-code") == "U+202E"
    places = await page.locator("#turn-1 .response").evaluate(
        """node => {
            const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
            const places = [];
            for (let text = walker.nextNode(); text; text = walker.nextNode())
                for (let at = 0; at < text.length; at += 1) {
                    if (!/[a-d]/.test(text.data[at])) continue;
                    const range = document.createRange();
                    range.setStart(text, at);
                    range.setEnd(text, at + 1);
                    places.push([range.getBoundingClientRect().left, text.data[at]]);
                }
            return places.sort((a, b) => a[0] - b[0]).map(place => place[1]).join("");
        }"""
    )
    assert places == "abcd"


async def test_each_vector_has_its_arithmetic_and_each_turn_what_it_took(
    store: SqlStore, visit: Visit
):
    planned = await recorded(store, [CALM, CALM])
    page = await visit(f"/run.html?run={first_run(planned).run_id}")

    second = page.locator("#turn-2 aside")
    told = await second.inner_text()
    assert "1 - min(12 / 500, 1) = 0.98" in told
    assert "(1 - 1) / 2 = 0.00; (0.00 + 1) / 2 = 0.50" in told
    assert "ends with ?: 1.00" in told
    facts = await second.locator(".turn-facts").inner_text()
    for part in ("12 tokens by the provider’s count", "740 ms", "$0.000021", "end_turn"):
        assert part in facts
    assert "Attempts\n2" in facts
    assert "0.83 overall" in await page.locator("#summary").inner_text()
    await page.locator("#plan summary").click()
    assert "Socratic way" in await page.locator("#plan details").inner_text()
    await page.locator("#raw summary").click()
    await page.locator("#raw-text", has_text='"visible_output_tokens": 12').wait_for()


async def test_a_link_leads_to_its_turn_and_runs_lead_to_the_next(store: SqlStore, visit: Visit):
    planned = await recorded(store, [CALM] * 3)
    page = await visit(f"/run.html?run={first_run(planned).run_id}#turn-3")

    await page.locator("#turn-3.here").wait_for()
    assert await page.evaluate("document.activeElement.id") == "turn-3"
    assert await page.locator("#turn-3").evaluate("node => node.getBoundingClientRect().top") < 500

    await page.keyboard.press("Shift+Tab")
    await page.locator("#neighbours a[rel=next]").first.press("Enter")
    await page.locator("#crumbs", has_text="scenario-1").wait_for()
    await page.locator("#neighbours a[rel=next]").press("Enter")  # the other tutor
    await page.locator("#summary", has_text="Tutor 1").wait_for()
    await page.locator("#crumbs a").nth(1).click()
    assert "research.html?experiment=exp-" in page.url


async def test_a_run_that_failed_says_why_and_one_that_is_unknown_too(
    store: SqlStore, visit: Visit
):
    planned = await recorded(store, [])
    run = first_run(planned)
    await store.record_failures([RecordedFailure(a_failure(run), 0)])

    page = await visit(f"/run.html?run={run.run_id}")
    await page.locator("#summary", has_text="The run failed").wait_for()
    assert "gave no response" in await page.locator("#turns").inner_text()

    page = await visit("/run.html?run=run-nowhere", quiet=False)
    await page.locator("h1", has_text="No such run").wait_for()
    assert "run-nowhere" in await page.locator("#summary").inner_text()
    page = await visit("/run.html")
    await page.locator("#summary", has_text="names no run").wait_for()


async def test_a_page_without_the_api_says_so_and_comes_back_by_itself(
    store: SqlStore, visit: Visit, address: str
):
    planned = await recorded(store, [CALM])
    page = await visit("/methodology.html", clock=True, quiet=False)
    await page.route("**/runs/**", lambda route: route.abort())
    await page.goto(f"{address}/run.html?run={first_run(planned).run_id}")
    await page.locator("#away", has_text="does not answer").wait_for()

    await page.unroute("**/runs/**")
    await page.clock.run_for(6_000)
    await page.locator("#turn-1").wait_for()
    assert not await page.locator("#away").is_visible()


async def test_axe_finds_nothing_on_a_run(store: SqlStore, visit: Visit):
    planned = await recorded(store, [HOSTILE, LONG[:6_000]])

    path = f"/run.html?run={first_run(planned).run_id}"
    await assert_accessible(visit, {path: "#turn-2"})
