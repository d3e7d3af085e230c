"""The pages as files on a web server of their own; the API answers elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from socratic_api.settings import ApiSettings
from socratic_bench.adapters.stores.sql.store import SqlStore
from tests.dashboard.backends.web_server import web_server, write_site
from tests.dashboard.conftest import Visit, serving
from tests.dashboard.research_page import rows_of
from tests.dashboard.seeding import experiment, seed, tutors

pytestmark = [
    pytest.mark.connected,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.xdist_group("browser"),
]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder below the root of a web server, and its address."""
    with web_server(tmp_path) as origin:
        yield tmp_path / "bench", origin


async def test_pages_in_a_folder_ask_the_api_that_their_config_file_names(
    store: SqlStore, visit: Visit, site: tuple[Path, str]
):
    await seed(store, experiment(tutors(3)))
    folder, origin = site
    settings = ApiSettings(freshness_ms=0, drain_deadline=0, cors_origins=(origin,))
    async with serving(store, settings=settings) as api:
        write_site(folder, api)
        page = await visit("/bench/", origin=origin)
        assert len(await rows_of(page)) == 3
        download = await page.locator("#download").get_attribute("href")
        assert download == f"{api}/api/model-comparison?format=csv"

        await page.locator("nav a", has_text="Method").click()
        await page.locator("#figures .sums").wait_for()
        assert page.url == f"{origin}/bench/methodology.html"
        link = page.locator("footer a", has_text="/openapi.json")
        assert await link.get_attribute("href") == f"{api}/openapi.json"
        await page.locator(".wordmark").click()
        assert len(await rows_of(page)) == 3


async def test_an_api_that_does_not_know_the_site_is_said_to_be_away(
    address: str, visit: Visit, site: tuple[Path, str]
):
    folder, origin = site
    write_site(folder, address)
    page = await visit("/bench/", origin=origin, quiet=False)

    await page.get_by_text("The API does not answer.").wait_for()
