"""The API serves its own pages and those of other distributions, or says that none is built."""

from __future__ import annotations

import json
import re
from importlib.metadata import EntryPoint
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from structlog.testing import capture_logs

from socratic_api import pages
from socratic_api.pages import Page
from socratic_api.routes import dashboard
from socratic_bench.plugins import Plugin
from tests.built_pages import ROOT

LIST = ROOT / "services/api/dashboard/src/pages.json"


def asking(static: Path | None = None) -> httpx.AsyncClient:
    routes = [endpoint.route() for endpoint in dashboard.endpoints(static)]
    transport = httpx.ASGITransport(Starlette(routes=routes))
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")


def offering(monkeypatch: pytest.MonkeyPatch, **offers: object) -> None:
    """Pretend that installed distributions offer these objects."""

    class Offer(Plugin):
        def load(self) -> object:
            return offers[self.name]

    entries = {name: EntryPoint(name, "nowhere:page", pages.GROUP) for name in offers}
    plugins = {name: Offer(pages.GROUP, name, (entry,)) for name, entry in entries.items()}
    monkeypatch.setattr(pages, "found", lambda _group: plugins)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "page.html").write_text('  <main id="main"><h1>Costs in $</h1></main>\n')
    (tmp_path / "page.js").write_text("export {};\n")
    (tmp_path / "page.css").write_text("h1 { margin: 0; }\n")
    (tmp_path / "secrets.py").write_text("KEY = 1\n")
    return tmp_path


async def test_every_page_is_served_under_its_title_with_the_listed_ones_in_its_navigation(
    client: httpx.AsyncClient,
):
    pages = json.loads(LIST.read_text())
    listed = [page for page in pages if not page.get("unlisted")]
    for page in pages:
        text = (await client.get(page["path"])).text
        assert f"<title>{page['title']} · Socratic Bench</title>" in text
        assert page["description"] in text
        links = re.findall(r'<a href="([\w.-]+)"( aria-current="page")?>([^<]+)</a>', text)
        shown = [(f"/{href}", bool(here), title) for href, here, title in links]
        assert shown[: len(listed)] == [
            (each["path"], each is page, each["title"]) for each in listed
        ]
        assert f'src="assets/{page["module"]}.js"' in text
    assert (await client.get("/")).text == (await client.get(listed[0]["path"])).text


async def test_a_page_that_is_not_listed_is_not_there(client: httpx.AsyncClient):
    assert (await client.get("/document.html")).status_code == 404
    assert (await client.get("/pages.html")).status_code == 404


async def test_a_page_of_another_distribution_stands_in_the_navigation_of_all(
    monkeypatch: pytest.MonkeyPatch, folder: Path
):
    offering(monkeypatch, costs=Page("<Costs>", "/costs.html", folder, "What it costs."))
    async with asking() as client:
        page = (await client.get("/costs.html")).text
        ranking = (await client.get("/research.html")).text
        script = await client.get("/assets/costs/page.js")

        assert "<h1>Costs in $</h1>" in page
        assert "<title>&lt;Costs&gt; · Socratic Bench</title>" in page
        assert '<a href="costs.html" aria-current="page">&lt;Costs&gt;</a>' in page
        assert 'src="assets/costs/page.js"' in page
        assert 'href="assets/costs/page.css"' in page
        assert '<a href="costs.html">&lt;Costs&gt;</a>' in ranking
        assert script.headers["content-type"] == "text/javascript; charset=utf-8"
        for name in ("page.html", "secrets.py", "nowhere.js"):
            assert (await client.get(f"/assets/costs/{name}")).status_code == 404


async def test_a_page_that_cannot_be_shown_is_left_out_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, folder: Path, tmp_path: Path
):
    offering(
        monkeypatch,
        ours=Page("Mine", "/research.html", folder),
        empty=Page("Empty", "/empty.html", tmp_path / "nowhere"),
        outside=Page("Outside", "/api/costs", folder),
        text="a page",
    )
    with capture_logs() as logs:
        async with asking() as client:
            ranking = await client.get("/research.html")

    assert "Which language models ask" in ranking.text
    for title in ("Mine", "Empty", "Outside"):
        assert f">{title}</a>" not in ranking.text
    reasons = {line["page"]: line["reason"] for line in logs}
    assert "another page has the path /research.html" in reasons["ours"]
    assert "page.html cannot be read" in reasons["empty"]
    assert "'/api/costs' is no path such as /costs.html" in reasons["outside"]
    assert "is no socratic_api.pages.Page but str" in reasons["text"]


async def test_without_built_pages_each_address_of_a_page_says_why(tmp_path: Path):
    (tmp_path / "not-built.txt").write_text("The registry <b>rests</b>.\n")
    async with asking(tmp_path) as client:
        for path in ("/", "/research.html", "/methodology.html"):
            answer = await client.get(path)
            assert answer.status_code == 503
            assert answer.headers["content-type"] == "text/html; charset=utf-8"
            assert "The registry &lt;b&gt;rests&lt;/b&gt;." in answer.text
            assert "make dashboard" in answer.text
        assert (await client.get("/assets/research.js")).status_code == 404


async def test_pages_that_nobody_has_built_yet_are_said_to_be_missing(tmp_path: Path):
    async with asking(tmp_path) as client:
        answer = await client.get("/")

    assert (answer.status_code, "Nobody has built them yet." in answer.text) == (503, True)
