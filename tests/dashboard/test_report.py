"""The report of an experiment as a file in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.results.pages import report_page
from tests.dashboard.browser import new_page
from tests.dashboard.conftest import DESKTOP, PHONE
from tests.dashboard.pressed_runs import TWO, filled
from tests.dashboard.seeding import experiment, seed, tutors

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = [
    pytest.mark.connected,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.xdist_group("browser"),
]


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
async def test_the_file_has_its_style_loads_nothing_and_never_scrolls_sideways(
    browser: Browser, store: SqlStore, tmp_path: Path, viewport: Any
):
    planned = experiment(tutors(3))
    await seed(store, planned)
    file = tmp_path / "report.html"
    file.write_text(await report_page(store, planned.experiment_id), "utf-8")
    said, loaded = [], []

    page = await new_page(browser, viewport=viewport)
    page.on("console", lambda message: said.append(message.text))
    page.on("request", lambda request: loaded.append(request.url))
    await page.goto(file.as_uri())

    assert said == []
    assert loaded == [file.as_uri()]
    heading = page.locator("thead th").first
    assert await heading.evaluate("each => getComputedStyle(each).textAlign") == "left"
    assert await page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    dots = page.locator("svg circle")
    places = [float(str(await each.get_attribute("cx"))) for each in await dots.all()]
    assert places[:3] == sorted(places[:3], reverse=True)
    assert len(places) == 4  # the last is the constant reply
    pressed = await filled(store, {**TWO, "p/lost": ["..?.", "...."]})
    file.write_text(await report_page(store, pressed.experiment_id), "utf-8")
    await page.reload()
    assert await page.locator("svg .stairs").count() == 3
    assert await page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    assert said == []
    await page.context.close()
