"""A real browser, and visits to pages in it that may say nothing in the console."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tests.servers.discovery import missing
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

BROWSERS = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
"""The first has no window around the page, and so takes half of the processor time."""

ARGUMENTS = [
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESKTOP = {"width": 1440, "height": 1000}
PHONE = {"width": 390, "height": 844}

Visit = Callable[..., Awaitable["Page"]]


@asynccontextmanager
async def launched() -> AsyncIterator[Browser]:
    """A browser. Without one the test that asks is skipped, or fails in CI."""
    from playwright.async_api import async_playwright

    executable = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if executable is None:
        missing("no Chromium or Chrome is installed")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable, args=ARGUMENTS)
        yield browser
        await browser.close()


async def new_page(browser: Browser, **context: Any) -> Page:
    """A page in a context of its own, whose waits have the patience of the other tests."""
    page = await (await browser.new_context(**context)).new_page()
    page.set_default_timeout(PATIENCE * 1000)
    return page


@asynccontextmanager
async def visiting(browser: Browser, address: str) -> AsyncIterator[Visit]:
    """Opens pages; at the end no page that was opened may have said anything in its console.

    With `clock`, time in the page can be wound on, so that nobody waits for its next look.
    """
    complaints: list[str] = []

    async def open_page(
        path: str,
        *,
        quiet: bool = True,
        clock: bool = False,
        origin: str = address,
        **context: Any,
    ) -> Page:
        context.setdefault("viewport", DESKTOP)
        page = await new_page(browser, **context)
        if clock:
            await page.clock.install()
        if quiet:
            page.on(
                "console",
                lambda message: complaints.append(f"{message.text} {message.location['url']}"),
            )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        await page.goto(origin + path)
        return page

    yield open_page
    for context in browser.contexts:
        await context.close()
    assert not complaints, complaints
