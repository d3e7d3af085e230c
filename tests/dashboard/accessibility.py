"""What axe finds on pages in each look: WCAG 2.2, levels A and AA, and its best practices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import urljoin

import pytest

from tests.dashboard.browser import DESKTOP, PHONE, Visit
from tests.dashboard.research_page import width_of
from tests.servers.discovery import missing

if TYPE_CHECKING:
    from playwright.async_api import Page

Look: TypeAlias = tuple[Mapping[str, int], Literal["light", "dark"]]
"""A viewport and a colour scheme."""

CROSSED: tuple[Look, ...] = ((DESKTOP, "light"), (PHONE, "dark"))
"""Each viewport and each scheme once."""

LOOKS = pytest.mark.parametrize(
    "looks",
    [
        pytest.param(CROSSED, id="light desktop and dark phone"),
        pytest.param(
            ((DESKTOP, "dark"), (PHONE, "light")),
            id="dark desktop and light phone",
            marks=pytest.mark.long,
        ),
    ],
)
"""For pages with tables and figures of every kind: the long stage has the other pairs too."""


async def findings(page: Page) -> list[str]:
    """What axe complains about, with the first element it means."""
    try:
        from axe_playwright_python.async_playwright import Axe
    except ImportError:
        missing("axe is not installed: pip install -r tests/requirements.txt")
    answer = (await Axe().run(page)).response
    return [
        f"{each['impact']} {each['id']}: {node['html'][:160]} {node['failureSummary'][:200]}"
        for each in answer["violations"]
        for node in each["nodes"][:1]
    ]


async def assert_accessible(
    visit: Visit, pages: Mapping[str, str], looks: Sequence[Look] = CROSSED
) -> None:
    """Load each address in each look, wait for what its page then has, and examine the page.

    A new page of the browser costs more than the examination: all of them share one.
    """
    page: Page | None = None
    for (viewport, scheme), (address, ready) in product(looks, pages.items()):
        if page is None:
            page = await visit(address, viewport=viewport, color_scheme=scheme)
        else:
            await page.set_viewport_size({"width": viewport["width"], "height": viewport["height"]})
            await page.emulate_media(color_scheme=scheme)
            await page.goto(urljoin(page.url, address))
        await page.locator(ready).first.wait_for()
        where = (address, viewport["width"], scheme)
        found = await findings(page)
        assert not found, (where, found)
        assert await width_of(page) <= viewport["width"], where
