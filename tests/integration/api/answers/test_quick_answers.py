"""A cached answer leaves at once, and equals an uncached one."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from socratic_api.bootstrap import build_app
from socratic_api.settings import ApiSettings
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.hosting.metrics import Metrics
from tests.dashboard.seeding import experiment, seed, tutors

PATHS = ["/api/model-comparison", "/api/cost-analysis", "/api/experiments"]
FRESH: dict[str, Any] = {"freshness_ms": 60_000}


def client_of(store: SqlStore, metrics: Metrics, **given: Any) -> httpx.AsyncClient:
    app = build_app(store, ApiSettings(**FRESH, **given), metrics=metrics)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1")


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
async def test_an_answer_at_hand_is_the_same_as_the_first_one(store: SqlStore, encoding: str):
    await seed(store, experiment(tutors(3)))
    async with client_of(store, Metrics()) as client:
        for path in PATHS:
            await assert_kept(client, path, encoding)


async def assert_kept(client: httpx.AsyncClient, path: str, encoding: str) -> None:
    asking = {"accept-encoding": encoding}
    first, second = [await client.get(path, headers=asking) for _ in range(2)]
    known = {"if-none-match": first.headers["etag"]}
    unchanged = await client.get(path, headers=known)

    assert second.status_code == 200
    assert second.content == first.content
    assert second.headers == first.headers
    packed = encoding == "gzip" and len(first.content) >= 1024
    assert ("content-encoding" in first.headers) == packed
    assert unchanged.status_code == 304
    assert not unchanged.content
    assert unchanged.headers["x-content-type-options"] == "nosniff"


async def test_it_is_counted_and_guarded_like_any_other(store: SqlStore):
    metrics = Metrics()
    async with client_of(store, metrics, api_keys=("a-key",), reads_need_key=True) as client:
        for _ in range(3):
            await client.get(PATHS[0], headers={"authorization": "Bearer a-key"})
        without = await client.get(PATHS[0])
        misnamed = await client.get(PATHS[0], headers={"host": "evil.example.com"})

    assert without.status_code == 401
    assert misnamed.status_code == 421
    counted = f'socratic_http_requests_total{{route="{PATHS[0]}",status="200"}} 3.0'
    assert counted in metrics.text().decode()
