"""The pages of the deployed stage: from its bucket, over its functions, polling with ETags."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import pytest_asyncio

from tests.aws.deployment.cloud_front import MOST_BYTES, CloudFront, cloud_front
from tests.aws.deployment.stage import Operator
from tests.dashboard.backends.site import Site, stock
from tests.dashboard.backends.suite import PagesSuite
from tests.dashboard.browser import Visit, launched, visiting
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from playwright.async_api import Browser


@dataclass(frozen=True)
class Deployed:
    """The stage as its readers reach it."""

    site: Site
    front: CloudFront


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with launched() as browser:
        yield browser


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def deployed(stage: Operator, browser: Browser) -> AsyncIterator[Deployed]:
    async def begin(config: dict[str, Any]) -> None:
        stage.configure(config)
        await asyncio.to_thread(stage.call_scheduler, "plan")

    store = stage.store()
    await store.prepare()
    async with cloud_front(stage) as front:
        key = stage.api_key()
        known = await stock(store)
        site = Site(front.address, front.address, store, known, key=key, streams=False, begin=begin)
        yield Deployed(site, front)
    await store.close()


@pytest.fixture(scope="module")
def site(deployed: Deployed) -> Site:
    return deployed.site


@pytest_asyncio.fixture(loop_scope="session")
async def visit(browser: Browser, site: Site) -> AsyncIterator[Visit]:
    async with visiting(browser, site.pages) as visit:
        yield visit


@pytest.mark.asyncio(loop_scope="session")
class TestDeployed(PagesSuite):
    """The promises, over the deployed stage."""

    async def test_a_running_experiment_is_polled_with_etags(
        self, site: Site, visit: Visit, deployed: Deployed
    ) -> None:
        path = f"/api/experiments/{site.known.experiment_id}"
        asked = deployed.front.answered
        page = await visit(f"/experiments.html?experiment={site.known.experiment_id}", clock=True)
        await page.locator("#detail-state", has_text="Complete.").wait_for()
        first = len(asked)
        async with page.expect_response(lambda response: response.url.endswith(path)):
            await page.clock.fast_forward(60_000)

        later = [each.status for each in asked[first:] if each.path == path]
        assert later == [304]
        assert not [each for each in asked if each.path.endswith("/events")]

    async def test_an_experiment_is_started_on_the_page_of_a_function(
        self, site: Site, visit: Visit
    ) -> None:
        await self.test_an_experiment_is_followed_from_its_start_to_its_end(
            replace(site, starts=True), visit
        )

    async def test_an_export_is_downloaded_under_its_name(self, site: Site) -> None:
        query = {"experiment": site.known.experiment_id, "format": "csv"}
        async with httpx.AsyncClient(timeout=PATIENCE) as client:
            answer = await client.get(f"{site.api}/api/export", params=query)

        name = f"{site.known.experiment_id}.csv"
        assert answer.status_code == 200
        assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'
        assert "You should always rest." in answer.text

    async def test_no_answer_is_larger_than_a_function_may_give(self, deployed: Deployed) -> None:
        """After the other tests: 200 KB of text were among the answers."""
        assert 10_000 < deployed.front.largest <= MOST_BYTES
