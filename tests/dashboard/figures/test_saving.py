"""A figure is saved as a file that stands alone, in a real browser."""

from __future__ import annotations

import struct
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.version import __version__
from tests.dashboard.browser import new_page
from tests.dashboard.conftest import PHONE, Visit
from tests.dashboard.seeding import MONDAY, REFERENCES, experiment, seed

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

pytestmark = [
    pytest.mark.long,
    pytest.mark.connected,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.xdist_group("browser"),
]

HOSTILE = '<script>alert(1)</script> "&\u202eevil'
MODELS = (*REFERENCES, TutorModel(id="shop/one", name=HOSTILE), TutorModel(id="shop/two"))
PAGES = {
    "/research.html": "#toolbar",
    "/frontier.html": "#cost",
    "/trends.html?model=shop/one": "#chart",
    "/heatmap.html?vector=exploratory": "#choice",
    "/compare.html?a=shop/one&b=shop/two": "#differences-head",
}
READY = "tr.row, svg.chart a, table.heat td, table.differences td"
NAMES = {"ns": "http://www.w3.org/2000/svg"}


async def saved(page: Page, place: str, name: str, folder: Path) -> Path:
    await page.locator(READY).first.wait_for(state="attached")
    async with page.expect_download() as download:
        await page.locator(f"{place} .save").get_by_role("button", name=name).click()
    file = folder / (await download.value).suggested_filename
    await (await download.value).save_as(file)
    return file


@pytest.mark.parametrize("path", PAGES)
async def test_a_saved_svg_stands_alone_and_names_its_source(
    store: SqlStore, visit: Visit, browser: Browser, tmp_path: Path, path: str
):
    planned = experiment(MODELS, occasion="week 1", created_at=MONDAY + timedelta(weeks=1))
    for each in (experiment(MODELS, occasion="week 0"), planned):
        await seed(store, each, failing=0)
    page = await visit(path, color_scheme="dark", viewport=PHONE)

    file = await saved(page, PAGES[path], "SVG", tmp_path)

    text = file.read_text(encoding="utf-8")
    svg = ET.fromstring(text)
    assert file.suffix == ".svg"
    assert svg.get("width") == "960"
    tags = {node.tag.partition("}")[2] for node in svg.iter()}
    assert tags <= {"svg", "title", "desc", "g", "rect", "circle", "line", "path", "text"}
    attributes = {name for node in svg.iter() for name in node.attrib}
    assert not attributes & {"class", "style", "href", "onclick"}
    assert "var(" not in text
    assert "rgb(" not in text
    ground = svg.find("ns:rect", NAMES)
    assert ground is not None
    assert ground.get("fill") == "#ffffff"
    told = "".join(svg.itertext())
    for word in (planned.experiment_id, "2026-03-09", "socratic-v1", planned.conditions_id):
        assert word in told
    assert f"Socratic Bench {__version__}" in told
    other = await new_page(browser)
    await other.goto(file.as_uri())
    box = await other.locator("svg").bounding_box()
    assert box is not None
    assert box["height"] > 200


async def test_a_hostile_name_is_text_in_the_file(store: SqlStore, visit: Visit, tmp_path: Path):
    await seed(store, experiment(MODELS), failing=0)
    page = await visit("/research.html")

    file = await saved(page, "#toolbar", "SVG", tmp_path)

    svg = ET.parse(file).getroot()
    assert HOSTILE in [each.text for each in svg.iter(f"{{{NAMES['ns']}}}text")]


async def test_the_saved_ranking_has_what_the_page_shows(
    store: SqlStore, visit: Visit, tmp_path: Path
):
    await seed(store, experiment(MODELS), failing=0)
    page = await visit("/research.html?q=shop/two")

    told = (await saved(page, "#toolbar", "SVG", tmp_path)).read_text(encoding="utf-8")

    assert "shop/two" in told
    assert "Lecturer" not in told


@pytest.mark.parametrize("path", ["/frontier.html", "/research.html"])
async def test_a_png_has_twice_the_pixels(store: SqlStore, visit: Visit, tmp_path: Path, path: str):
    await seed(store, experiment(MODELS), failing=0)
    page = await visit(path)

    picture = (await saved(page, PAGES[path], "PNG", tmp_path)).read_bytes()

    assert picture.startswith(b"\x89PNG\r\n")
    [width] = struct.unpack(">I", picture[16:20])
    assert width == 2 * 960
    assert await page.locator(f"{PAGES[path]} .save [role=status]").inner_text() == "Saved as PNG."
