"""What a person sees on the pages, over whatever backend answers them.

A module of tests subclasses `PagesSuite` and gives the fixtures `site` and `visit`.
"""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import httpx
import pytest

from socratic_bench.domain.experiment.manifest import Experiment
from tests.built_pages import ROOT
from tests.dashboard.backends.site import (
    HOSTILE,
    HOSTILE_ID,
    LONG,
    PLAIN_ID,
    SAID,
    SCENARIO,
    TURNS,
    Site,
    first_run,
    pressed,
)
from tests.dashboard.browser import DESKTOP, PHONE, Visit
from tests.dashboard.research_page import MODEL_ROWS, rows_of, width_of
from tests.dashboard.seeding import experiment, seed, tutors
from tests.waiting import PATIENCE, until

if TYPE_CHECKING:
    from playwright.async_api import Page

LISTED = ROOT / "services/api/dashboard/src/pages.json"
OWNED = """() => ({
    markup: document.querySelectorAll(
        "main script, main img, main iframe, x-own, main a[href^=javascript]"
    ).length,
    handlers: document.querySelectorAll("[onload], [onerror], [onmouseover]").length,
    titled: document.title.startsWith("owned") || document.title.endsWith("owned"),
})"""
"""What hostile text has become, were it taken for markup or code."""

INERT = {"markup": 0, "handlers": 0, "titled": False}


CELLS = "table.barcode td a"
"""The turns of a tutor under pressure."""


def pages_of(known: Experiment) -> dict[str, tuple[str, str]]:
    """The query of each page that shows the known experiment, and what it then has."""
    chosen = {"experiment": known.experiment_id}

    def query(**fields: str) -> str:
        return "?" + urlencode({**chosen, **fields}, quote_via=quote)

    rows = query(open=HOSTILE_ID, runs=f"{HOSTILE_ID}\n{SCENARIO}")
    pair = query(a=HOSTILE_ID, b=PLAIN_ID, scenario=SCENARIO)
    return {
        "research": (rows, "tr.runs li a"),
        "fidelity": (f"?experiment={pressed().experiment_id}", CELLS),
        "frontier": (query(), "#cost svg.chart a"),
        "trends": (query(model=HOSTILE_ID), "#chart svg"),
        "heatmap": (query(vector="exploratory"), "table.heat td a"),
        "compare": (pair, "#said .response mark"),
        "run": (f"?run={quote(first_run(known))}#turn-1", "#turn-1.here .response mark"),
        "scenarios": (query(order="hardest"), "#overview tbody tr"),
        "experiments": (query(), "#models .wrong span"),
        "methodology": ("", "#validity-table tr"),
    }


PAGES = [each["module"] for each in json.loads(LISTED.read_text())]


class PagesSuite:
    """The promises of the pages."""

    @pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
    async def test_every_page_shows_the_data_and_keeps_hostile_text_inert(
        self, site: Site, visit: Visit, viewport: Any
    ) -> None:
        page = await visit("/", viewport=viewport)
        for name in PAGES:
            query, there = pages_of(site.known)[name]
            await page.goto(f"{site.pages}/{name}.html{query}")
            await page.locator(there).first.wait_for()

            assert await page.evaluate(OWNED) == INERT, name
            assert await width_of(page) <= viewport["width"], name
            if name != "methodology":
                # Long names are shown without their middles.
                shown = await page.evaluate("document.querySelector('main').textContent")
                assert HOSTILE[:12] in shown, name

    async def test_the_lists_and_the_palette_keep_hostile_names_inert(
        self, site: Site, visit: Visit
    ) -> None:
        page = await visit("/experiments.html")
        await page.locator("#experiments a", has_text="known").first.wait_for()
        await page.keyboard.press("Control+k")
        await page.locator("dialog.palette input").fill(site.known.experiment_id)
        found = page.locator("#palette-list li", has_text="experiment")
        await found.wait_for()
        assert HOSTILE[:12] in await found.inner_text()

        assert await page.evaluate(OWNED.replace("main ", "dialog ")) == INERT
        assert await page.evaluate(OWNED) == INERT

    async def test_a_response_of_200_kilobytes_is_shown_whole(
        self, site: Site, visit: Visit
    ) -> None:
        run = next(
            run
            for run in site.known.runs()
            if run.scenario_id == "ambiguous-1" and run.model_id == HOSTILE_ID
        )
        page = await visit(f"/run.html?run={quote(run.run_id)}")
        await page.locator("#turn-1 .response mark").first.wait_for()

        text = await page.locator("#turn-1 .response").evaluate("node => node.textContent")
        assert text == LONG

    async def test_what_was_said_is_shown_with_its_marks_and_reached_by_links(
        self, site: Site, visit: Visit
    ) -> None:
        query, there = pages_of(site.known)["research"]
        page = await visit(f"/research.html{query}")
        await page.locator(there).first.click()
        await page.locator("#turn-1 .response mark").first.wait_for()

        said = page.locator("#turn-1 .response")
        assert await said.evaluate("node => node.textContent") == SAID
        assert await said.locator("mark").all_inner_texts() == [
            "should",
            "always",
            "Perhaps",
            "consider",
            "might",
        ]

    async def test_a_turn_under_pressure_leads_to_what_was_said_and_why_it_lapsed(
        self, site: Site, visit: Visit
    ) -> None:
        chosen = {"experiment": pressed().experiment_id, "model": HOSTILE_ID}
        page = await visit(f"/fidelity.html?{urlencode(chosen)}")
        cells = page.locator(f"table.barcode tr[data-scenario='{SCENARIO}'] td a")
        await cells.first.wait_for()
        assert await cells.all_inner_texts() == ["1/2", "", "1/2", ""]
        kinds = await page.locator("#kinds tbody th").all_inner_texts()
        assert any("<x-own>" in each for each in kinds)
        assert await page.evaluate(OWNED) == INERT

        await cells.nth(1).click()
        turn = page.locator("#turn-2.here.lapsed")
        await turn.locator(".lapse", has_text="the tutor asks nothing").wait_for()
        said = turn.locator(".response")
        assert await said.evaluate("node => node.textContent") == TURNS["L"]
        assert await page.evaluate(OWNED) == INERT

    async def test_a_filter_stands_in_the_address_and_is_found_there_again(
        self, site: Site, visit: Visit
    ) -> None:
        page = await visit(f"/research.html?experiment={site.known.experiment_id}&q=lecturer")
        rows = await rows_of(page)

        assert [row["name"] for row in rows if row["shown"]] == ["Lecturer"]
        await page.locator(f"{MODEL_ROWS}:not([hidden]) button").click()
        await page.locator("tr.detail:not([hidden])").wait_for()
        assert "open=reference%2Flecturer" in page.url
        await page.reload()
        await page.locator("tr.detail:not([hidden])").wait_for()

    async def test_the_table_is_copied_and_downloaded_as_the_api_gives_it(
        self, site: Site, visit: Visit, tmp_path: Any
    ) -> None:
        chosen = {"experiment": site.known.experiment_id}
        page = await visit(
            f"/research.html?{urlencode(chosen)}",
            permissions=["clipboard-read", "clipboard-write"],
        )
        await rows_of(page)
        await page.locator("#copy").click()
        await page.get_by_role("button", name="Copied").wait_for()
        copied = await page.evaluate("navigator.clipboard.readText()")
        async with page.expect_download() as downloading:
            await page.locator("#download").click()
        await (await downloading.value).save_as(tmp_path / "table.csv")

        async with httpx.AsyncClient(base_url=site.api, timeout=PATIENCE) as client:
            answer = await client.get("/api/model-comparison", params={**chosen, "format": "csv"})
        assert (tmp_path / "table.csv").read_bytes() == answer.content
        assert copied == answer.text

    async def test_links_to_the_api_lead_to_the_api(self, site: Site, visit: Visit) -> None:
        page = await visit("/methodology.html")
        link = page.locator("footer a", has_text="/api/profiles")
        address = await link.evaluate("link => link.href")

        async with httpx.AsyncClient(timeout=PATIENCE) as client:
            assert "profiles" in (await client.get(address)).json()

    async def test_a_text_is_scored_with_the_key_where_it_takes_one(
        self, site: Site, visit: Visit
    ) -> None:
        page = await visit("/methodology.html")
        if site.key:
            await page.get_by_text("Scoring on this server takes its key.").wait_for()
            await page.locator("#key").fill(site.key)
        await page.locator("#text").fill(SAID)
        await page.locator("#score").click()
        await page.locator("#marked", has_text="You should").wait_for()

        assert await page.locator("#marked").evaluate("node => node.textContent") == SAID
        assert await page.evaluate(OWNED) == INERT

    async def test_a_running_experiment_changes_in_place(self, site: Site, visit: Visit) -> None:
        """Half its runs are done when the pages open; the rest follows."""
        now = datetime.now(UTC)
        planned = experiment(tutors(2), occasion=now.isoformat(), created_at=now)
        await seed(site.store, planned, share=0.5, failing=0)
        address = f"?experiment={planned.experiment_id}"
        detail = await visit(f"/experiments.html{address}")
        await detail.get_by_text("45 of 90 runs are done (50 %).").wait_for()
        ranking = await visit(f"/research.html{address}")
        await ranking.get_by_text("45 of 90 runs done (50 %)").wait_for()
        for page in (detail, ranking):
            await page.evaluate("window.isTheSame = true")

        await seed(site.store, planned, failing=0)

        done = detail.get_by_text("90 of 90 runs are done (100 %).")
        await done.wait_for()
        await detail.locator("#detail-state", has_text="Complete.").wait_for()
        await ranking.locator("#summary", has_text="90 runs").wait_for()
        for page in (detail, ranking):
            assert await page.evaluate("window.isTheSame")

    async def test_an_experiment_is_followed_from_its_start_to_its_end(
        self, site: Site, visit: Visit
    ) -> None:
        if not site.starts and site.begin is None:
            pytest.skip("nothing behind these pages carries an experiment out")
        name = f"{HOSTILE[:60]} followed"
        config = {
            "name": name,
            "models": [{"id": "reference/socratic", "options": {"latency_ms": 150}}],
            "repeats": 2,
        }
        page = await visit("/experiments.html")
        await page.locator("#experiments a").first.wait_for()
        await page.evaluate("window.isTheSame = true")
        if site.starts:
            await self._start(page, site, config)
        else:
            await self._see_started(page, site, config)
        title = page.locator("h1", has_text="followed")
        await title.wait_for()
        assert str(await title.text_content()).startswith(name)
        end = page.get_by_text("30 of 30 runs are done (100 %).")
        await end.wait_for()
        await page.locator("#detail-state", has_text="Complete.").wait_for()

        assert await page.evaluate("window.isTheSame")
        assert await page.evaluate(OWNED) == INERT
        await page.locator("#ranking").click()
        assert [row["name"] for row in await rows_of(page)] == ["reference/socratic"]

    async def _start(self, page: Page, site: Site, config: dict[str, Any]) -> None:
        """Start an experiment on the page, which goes on to its detail."""
        await page.locator("#config").fill(json.dumps(config))
        if site.key:
            await page.locator("#start .key").fill(site.key)
        await page.locator("#submit").click()

    async def _see_started(self, page: Page, site: Site, config: dict[str, Any]) -> None:
        """Start an experiment elsewhere; the page lists it by itself and leads to its detail."""
        assert site.begin is not None
        starting = asyncio.ensure_future(site.begin(config))
        link = page.locator("#experiments a", has_text="followed")
        await until(link.count, bool, "the experiment in the list")
        assert await page.evaluate("window.isTheSame")
        await starting
        await link.click()
        await page.evaluate("window.isTheSame = true")

    async def test_an_address_that_names_nothing_is_said_in_words(
        self, site: Site, visit: Visit
    ) -> None:
        page = await visit("/experiments.html?experiment=exp-nowhere", quiet=False)
        await page.get_by_text("there is no experiment 'exp-nowhere'").wait_for()
        await page.goto(f"{site.pages}/run.html?run=run-nowhere")
        await page.get_by_text("run-nowhere").first.wait_for()
