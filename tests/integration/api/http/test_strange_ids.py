"""An id in a query that no database can hold is the client's mistake, never the store's trouble."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import product

import httpx
import pytest

from socratic_api.settings import ApiSettings
from tests.contract.store.adapters import POSTGRESQL, SQLITE, StoreAdapter, opened
from tests.integration.api.conftest import opened as opened_api

PAGES = ["/api/model-comparison", "/api/cost-analysis", "/api/scenarios", "/api/export"]


@pytest.fixture(
    params=[
        pytest.param(SQLITE, id=SQLITE.name),
        pytest.param(POSTGRESQL, id=POSTGRESQL.name, marks=pytest.mark.connected),
    ]
)
async def client(
    request: pytest.FixtureRequest, settings: ApiSettings
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an API over each kind of database. PostgreSQL holds no text with a NUL."""
    adapter: StoreAdapter = request.param
    async with (
        adapter.database() as database,
        opened(database) as store,
        opened_api(store, settings) as client,
    ):
        yield client


async def test_an_id_that_no_database_can_hold_is_refused_before_the_store(
    client: httpx.AsyncClient,
):
    refused = "experiment: holds characters that no id has"
    ids = ["%00", "exp-%00", "%00exp", "a%0Ab", "a%7F", "%C2%85", "%E2%80%AE"]
    for page, experiment_id in product(PAGES, ids):
        answer = await client.get(f"{page}?experiment={experiment_id}")
        told = answer.status_code, answer.json().get("detail")
        assert told == (422, refused), (page, experiment_id)


async def test_an_id_that_no_experiment_has_is_not_found(client: httpx.AsyncClient):
    # Half a surrogate pair is no UTF-8: it is read as U+FFFD, which every database holds.
    ids = ["exp-nowhere", "%ed%a0%80", "%27%20OR%201=1", "%F0%9F%A6%89", "x" * 200]
    for page, experiment_id in product(PAGES, ids):
        answer = await client.get(f"{page}?experiment={experiment_id}")
        assert answer.status_code == 404, (page, experiment_id)
        assert "there is no experiment " in answer.json()["detail"], (page, experiment_id)
