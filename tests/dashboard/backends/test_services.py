"""The pages over the services as processes, on RabbitMQ and PostgreSQL.

They come from the API itself, and from a folder on a web server of another origin.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from socratic_bench.addresses import open_store
from tests.dashboard.backends.site import Site, stock
from tests.dashboard.backends.suite import PagesSuite
from tests.dashboard.backends.web_server import web_server, write_site
from tests.dashboard.browser import Visit, visiting
from tests.e2e.service_processes import all_ready
from tests.servers import postgresql, rabbitmq

if TYPE_CHECKING:
    from playwright.async_api import Browser

KEY = "a-key-for-tests-of-forty-characters-long"
KINDS = ("api", "runner", "judge", "curator")
FOLDER = "bench"
"""The pages lie below the root of their server."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def sites(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, Site]]:
    """The same services behind both kinds of pages."""
    root = tmp_path_factory.mktemp("static")
    async with (
        rabbitmq.namespace() as broker,
        postgresql.prepared_database() as store_url,
        AsyncExitStack() as opened,
    ):
        store = open_store(store_url)
        opened.push_async_callback(store.close)
        with web_server(root) as origin:
            environment = {
                "SOCRATIC_BROKER_URL": broker,
                "SOCRATIC_STORE_URL": store_url,
                "SOCRATIC_API_KEYS": KEY,
                "SOCRATIC_CORS_ORIGINS": origin,
            }
            async with all_ready(environment, *KINDS) as services:
                api = (await services["api"].logged("serving"))["address"]
                write_site(root / FOLDER, api)
                own = Site(api, api, store, await stock(store), key=KEY, starts=True)
                yield {"served": own, "folder": replace(own, pages=f"{origin}/{FOLDER}")}


@pytest.fixture(scope="module", params=["served", "folder"])
def site(sites: dict[str, Site], request: pytest.FixtureRequest) -> Site:
    """Pages that the API serves itself, and pages from a folder."""
    return sites[request.param]


@pytest_asyncio.fixture(loop_scope="session")
async def visit(browser: Browser, site: Site) -> AsyncIterator[Visit]:
    async with visiting(browser, site.pages) as visit:
        yield visit


@pytest.mark.long
@pytest.mark.connected
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.xdist_group("browser")
class TestServices(PagesSuite):
    """The promises, over services."""
