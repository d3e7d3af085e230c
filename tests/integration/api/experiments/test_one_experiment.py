"""One experiment over HTTP: progress, pending runs, and the changes of its state."""

from __future__ import annotations

import asyncio
from itertools import product

import httpx
import pytest

from socratic_api.capabilities import Capabilities
from socratic_bench.adapters.brokers.memory.broker import MemoryBroker
from socratic_bench.adapters.stores.sql.store import SqlStore
from tests.dashboard.seeding import experiment, seed, tutors
from tests.integration.api.experiments.conftest import CONFIG, Asking
from tests.waiting import until

PATH = "/api/experiments"


async def test_the_detail_says_how_far_each_model_is_and_why_runs_failed(
    client: httpx.AsyncClient, store: SqlStore
):
    planned = experiment(tutors(3), occasion="2026-W10")
    await seed(store, planned, share=0.8, failing=0.2)

    shown = (await client.get(f"{PATH}/{planned.experiment_id}")).json()
    by_name = (await client.get(f"{PATH}/2026-W10")).json()

    assert shown == by_name
    assert (shown["planned"], shown["done"], shown["left"]) == (135, 108, 27)
    assert [each["model_id"] for each in shown["models_progress"]] == [
        each.id for each in planned.manifest.models
    ]
    failing = next(each for each in shown["models_progress"] if each["failed"])
    assert failing["failures"] == {"rate_limited": failing["failed"]}
    assert failing["failure_examples"] == {"rate_limited": "429"}
    assert shown["dimensions"] == {"ambiguous": 5, "ethical": 5, "student": 5}


async def test_an_unchanged_detail_is_not_sent_again(client: httpx.AsyncClient, store: SqlStore):
    planned = experiment(tutors(2))
    await seed(store, planned, share=0.5)
    path = f"{PATH}/{planned.experiment_id}"
    etag = (await client.get(path)).headers["etag"]

    async def status() -> int:
        return (await client.get(path, headers={"if-none-match": etag})).status_code

    assert await status() == 304
    await seed(store, planned)
    await until(status, lambda it: it == 200, "the new detail")


async def test_pending_runs_are_named_with_what_they_wait_for(
    client: httpx.AsyncClient, store: SqlStore
):
    planned = experiment(tutors(2))
    await seed(store, planned, share=0.9, failing=0.0)

    some = (await client.get(f"{PATH}/{planned.experiment_id}/pending?limit=4")).json()
    every = (await client.get(f"{PATH}/{planned.experiment_id}/pending")).json()

    assert (len(some["runs"]), some["has_more"]) == (4, True)
    assert (len(every["runs"]), every["has_more"]) == (9, False)
    assert every["runs"][:4] == some["runs"]
    assert {each["waits_for"] for each in every["runs"]} == {"response"}


async def test_an_unknown_experiment_is_a_problem(client: httpx.AsyncClient):
    asked: list[tuple[str, str, dict[str, str] | None]] = [
        ("GET", "", None),
        ("GET", "/pending", None),
        ("GET", "/events", None),
        ("DELETE", "", None),
        ("PATCH", "", {"state": "paused"}),
    ]
    names = ["exp-nowhere", "a" * 300, "%00", "%0A"]
    for name, (method, part, body) in product(names, asked):
        answer = await client.request(method, f"{PATH}/{name}{part}", json=body)
        assert answer.status_code == 404, (method, name, part)


async def test_an_experiment_is_paused_resumed_and_cancelled(services: httpx.AsyncClient):
    path = (await services.post(PATH, json=CONFIG)).headers["location"]

    told = [
        (await services.patch(path, json={"state": state})).json()["state"]
        for state in ("paused", "resumed", "cancelled")
    ]
    shown = (await services.get(path)).json()["state"]

    assert told == ["paused", "resumed", "cancelled"]
    assert shown == "cancelled"


async def test_a_state_changes_by_the_whole_id_alone(services: httpx.AsyncClient):
    experiment_id = (await services.post(PATH, json=CONFIG)).json()["experiment_id"]
    path = f"{PATH}/{experiment_id[:12]}"

    assert (await services.get(path)).status_code == 200
    assert (await services.patch(path, json={"state": "paused"})).status_code == 404
    assert (await services.delete(path)).status_code == 404
    assert (await services.get(path)).json()["state"] == "running"


async def test_no_other_state_can_be_given(services: httpx.AsyncClient):
    path = (await services.post(PATH, json=CONFIG)).headers["location"]
    bodies: list[object] = [{}, {"state": "deleted"}, {"state": "open"}, [], {"state": 1}]
    for body in bodies:
        assert (await services.patch(path, json=body)).status_code == 422, body
    assert (await services.get(path)).json()["state"] == "running"


async def test_a_function_leaves_the_rows_of_a_large_experiment_to_the_curator(
    asking: Asking, store: SqlStore, broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("socratic_api.background_tasks.REMOVED_WITHIN", 0.0)
    async with asking(Capabilities(broker, outlives_answers=False)) as client:
        path = (await client.post(PATH, json=CONFIG)).headers["location"]
        deleted = await client.delete(path)
        assert not [each for each in asyncio.all_tasks() if each.get_name().startswith("deletion")]
        assert (await client.get(path)).status_code == 404

    assert (deleted.status_code, deleted.json()["rows_left"]) == (200, True)
    assert await store.deletable(None) != []


async def test_a_deleted_experiment_is_gone_with_its_rows_and_requests(
    services: httpx.AsyncClient, store: SqlStore, broker: MemoryBroker
):
    told = (await services.post(PATH, json=CONFIG)).json()
    path = f"{PATH}/{told['experiment_id']}"

    deleted = await services.delete(path)
    again = await services.delete(path)

    assert deleted.status_code == 200
    assert deleted.json()["rows_left"] is False
    assert again.json()["rows"] == 0
    assert broker.outstanding == 0
    assert (await services.get(path)).status_code == 404
    assert (await services.get(PATH)).json()["total"] == 0
    assert (await services.patch(path, json={"state": "resumed"})).status_code == 409
    assert (await services.post(PATH, json=CONFIG)).status_code == 409


async def test_an_api_that_only_reads_names_the_command(asking: Asking, store: SqlStore):
    planned = experiment(tutors(2))
    await seed(store, planned, share=0.5)
    path = f"{PATH}/{planned.experiment_id}"
    async with asking(Capabilities(may_write=False, may_stream=False)) as client:
        answers = [
            await client.patch(path, json={"state": "paused"}),
            await client.delete(path),
            await client.get(f"{path}/events"),
            await client.post(PATH, json=CONFIG),
        ]
        shown = await client.get(path)

    assert [each.status_code for each in answers] == [409] * 4
    assert f"socratic-bench pause {planned.experiment_id}" in answers[0].text
    assert f"socratic-bench delete {planned.experiment_id}" in answers[1].text
    assert "If-None-Match" in answers[2].text
    assert shown.json()["state"] == "overdue"
