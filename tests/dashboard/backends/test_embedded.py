"""The pages over SQLite, served by the process that has the store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from tests.dashboard.backends.site import Site, stock
from tests.dashboard.backends.suite import PagesSuite
from tests.dashboard.browser import Visit, visiting
from tests.dashboard.conftest import serving
from tests.prepared_sqlite import prepared_store

if TYPE_CHECKING:
    from playwright.async_api import Browser


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    async with (
        prepared_store(tmp_path_factory.mktemp("embedded")) as store,
        serving(store) as address,
    ):
        yield Site(address, address, store, await stock(store))


@pytest_asyncio.fixture(loop_scope="session")
async def visit(browser: Browser, site: Site) -> AsyncIterator[Visit]:
    async with visiting(browser, site.pages) as visit:
        yield visit


@pytest.mark.connected
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.xdist_group("browser")
class TestEmbedded(PagesSuite):
    """The promises, over SQLite."""
