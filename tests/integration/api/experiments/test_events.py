"""Server-sent events over a real socket: what comes, when it ends, and how many may listen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
import pytest

from socratic_api.answers import streams as streams_module
from socratic_api.answers.streams import Streams
from socratic_api.bootstrap import build_app
from socratic_api.settings import ApiSettings
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.errors import StoreUnavailable
from socratic_bench.hosting.http.server import serving
from tests.dashboard.seeding import experiment, seed, tutors
from tests.waiting import PATIENCE, until, waiting_for

Event = tuple[str, str, Any]
"""Name, id and data."""


class Following:
    """The events of one stream, as they come."""

    def __init__(self, lines: AsyncIterator[str]) -> None:
        self._lines = lines

    async def next(self) -> Event:
        """The next event, waited for. Raises StopAsyncIteration at the end."""
        fields: dict[str, str] = {}
        async with waiting_for("an event"):
            while True:
                line = await anext(self._lines)
                if line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                elif "event" in fields:
                    return fields["event"], fields.get("id", ""), json.loads(fields["data"])

    async def until_done(self, runs: int) -> Event:
        """The first event with so many runs done."""
        while True:
            event = await self.next()
            if event[0] == "experiment" and event[2]["done"] == runs:
                return event


@asynccontextmanager
async def served(store: SqlStore, streams: Streams) -> AsyncIterator[str]:
    app = build_app(store, ApiSettings(freshness_ms=0), streams=streams)
    async with serving(app, "127.0.0.1", 0, shutdown_timeout=PATIENCE) as address:
        try:
            yield address
        finally:
            streams.stop()


@asynccontextmanager
async def following(address: str, experiment_id: str, **headers: str) -> AsyncIterator[Following]:
    path = f"/api/experiments/{experiment_id}/events"
    async with following_at(address, path, **headers) as events:
        yield events


@asynccontextmanager
async def following_at(address: str, path: str, **headers: str) -> AsyncIterator[Following]:
    async with (
        httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client,
        client.stream("GET", path, headers=headers) as answer,
    ):
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["x-accel-buffering"] == "no", "nginx would keep events back"
        assert "no-transform" in answer.headers["cache-control"], "so would a proxy that compresses"
        yield Following(answer.aiter_lines())


async def test_each_change_comes_as_the_detail_that_the_api_answers(store: SqlStore):
    planned = experiment(tutors(2))
    await seed(store, planned, share=0.5, failing=0.0)
    async with (
        served(store, Streams()) as address,
        following(address, planned.experiment_id) as events,
        httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client,
    ):
        name, etag, first = await events.next()
        shown = await client.get(f"/api/experiments/{planned.experiment_id}")
        await seed(store, planned, failing=0.0)
        _, _, last = await events.until_done(90)

    assert (name, first["done"], last["done"]) == ("experiment", 45, 90)
    assert first == shown.json()
    assert etag == shown.headers["etag"]


async def test_each_change_of_the_ranking_is_told_with_its_etag_and_no_data(store: SqlStore):
    planned = experiment(tutors(2))
    await seed(store, planned, share=0.5, failing=0.0)
    path = f"/api/model-comparison?experiment={planned.experiment_id}"
    async with (
        served(store, Streams()) as address,
        following_at(address, path.replace("?", "/events?")) as events,
        httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client,
    ):
        first = await events.next()
        before = await client.get(path)
        await seed(store, planned, failing=0.0)
        etags, done = [first[1]], 45
        while done < 90:
            name, etag, data = await events.next()
            assert (name, data) == ("change", {})
            etags.append(etag)
            after = await client.get(path)
            done = sum(each["done"] for each in after.json()["experiments"])

    assert first == ("change", before.headers["etag"], {})
    assert len(set(etags)) == len(etags) > 1


async def test_a_client_that_comes_back_gets_no_event_twice(store: SqlStore):
    planned = experiment(tutors(2))
    await seed(store, planned, share=0.5, failing=0.0)
    async with served(store, Streams(heartbeat_seconds=0.0)) as address:
        async with following(address, planned.experiment_id) as events:
            _, etag, _ = await events.next()
        async with following(address, planned.experiment_id, **{"last-event-id": etag}) as again:
            first = await again.next()

    assert first == ("heartbeat", "", {}), "nothing else comes"


async def test_a_deleted_experiment_ends_its_stream(store: SqlStore):
    planned = experiment(tutors(2))
    await seed(store, planned, share=0.5)
    async with (
        served(store, Streams()) as address,
        following(address, planned.experiment_id) as events,
    ):
        await events.next()
        await store.change_state(planned.experiment_id, ExperimentState.DELETED)
        event = await events.next()
        with pytest.raises(StopAsyncIteration):
            await events.next()

    assert event[0] == "gone"


async def test_a_store_that_is_away_is_told_once_and_the_stream_goes_on(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
):
    planned = experiment(tutors(2))
    await seed(store, planned, share=0.5)

    async def away(*_: object) -> None:
        raise StoreUnavailable("secret-host")

    async with (
        served(store, Streams()) as address,
        following(address, planned.experiment_id) as events,
    ):
        await events.next()
        with monkeypatch.context() as patched:
            patched.setattr(store, "revision", away)
            told = await events.next()
        back = await events.next()

    assert told[::2] == ("away", {})
    assert back[0] == "experiment"


async def test_streams_end_at_once_when_the_server_stops(store: SqlStore):
    planned = experiment(tutors(2))
    await seed(store, planned, share=0.5)
    streams = Streams()
    async with waiting_for("the end of the server"), served(store, streams) as address:
        following_it = following(address, planned.experiment_id)
        events = await following_it.__aenter__()
        await events.next()
        assert streams.open == 1
    # The server has ended, though it would have waited for its answers.
    with suppress(httpx.HTTPError):
        await following_it.__aexit__(None, None, None)

    assert streams.open == 0


async def test_a_client_that_leaves_makes_room_for_another(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(streams_module, "MOST_STREAMS", 2)
    planned = experiment(tutors(2))
    await seed(store, planned, share=0.5)
    path = f"/api/experiments/{planned.experiment_id}/events"
    streams = Streams()
    async with (
        served(store, streams) as address,
        httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client,
    ):
        async with (
            following(address, planned.experiment_id) as one,
            following(address, planned.experiment_id) as other,
        ):
            await asyncio.gather(one.next(), other.next())
            refused = await client.get(path)
            shown = await client.get("/healthz")

        async def number() -> int:
            return streams.open

        await until(number, lambda count: count == 0, "the end of both streams")
        async with following(address, planned.experiment_id) as third:
            await third.next()

    assert refused.status_code == 503
    assert "retry-after" in refused.headers
    assert shown.status_code == 200
