"""A browser for all tests, and the dashboard over a store of the test's own.

To start a browser takes longer than most tests: all of them share one, and so one event loop.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from socratic_api.entrypoints.container import serve
from socratic_api.settings import ApiSettings
from socratic_bench.adapters.sql.store import SqlStore
from socratic_bench.ports.broker import Broker
from tests.built_pages import require_pages
from tests.servers.discovery import missing
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
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


@pytest.fixture(scope="session", autouse=True)
def _pages() -> None:
    require_pages()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    try:
        from playwright.async_api import async_playwright
    except ImportError:
        missing("Playwright is not installed: pip install -r tests/dashboard/requirements.txt")
    executable = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if executable is None:
        missing("no Chromium or Chrome is installed")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable, args=ARGUMENTS)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def store(tmp_path: Path) -> AsyncIterator[SqlStore]:
    store = SqlStore.from_url(f"sqlite:///{tmp_path}/benchmark.db")
    await store.prepare()
    yield store
    await store.close()


@asynccontextmanager
async def serving(
    store: SqlStore,
    port: int = 0,
    settings: ApiSettings | None = None,
    broker: Broker | None = None,
) -> AsyncIterator[str]:
    """The address of the API and its pages while they are served."""
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    settings = settings or ApiSettings(freshness_ms=0, drain_deadline=0)
    task = asyncio.create_task(serve(store, "127.0.0.1", port, ready.set_result, settings, broker))
    try:
        begun: tuple[asyncio.Future[Any], ...] = (task, ready)
        await asyncio.wait(begun, return_when=asyncio.FIRST_COMPLETED, timeout=PATIENCE)
        if task.done():
            task.result()
        yield ready.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest_asyncio.fixture(loop_scope="session")
async def address(store: SqlStore) -> AsyncIterator[str]:
    async with serving(store) as address:
        yield address


Visit = Callable[..., Awaitable["Page"]]


@pytest_asyncio.fixture(loop_scope="session")
async def visit(browser: Browser, address: str) -> AsyncIterator[Visit]:
    """Opens a page; at the end no page that was opened may have said anything in its console.

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
        page = await (await browser.new_context(**context)).new_page()
        if clock:
            await page.clock.install()
        if quiet:
            page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        await page.goto(origin + path)
        return page

    yield open_page
    for context in browser.contexts:
        await context.close()
    assert complaints == []
