"""Submitting over HTTP: what is requested, what a repeated request adds, and the mistakes."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from socratic_api.capabilities import Capabilities
from socratic_bench.adapters.brokers.memory.broker import MemoryBroker
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.errors import BrokerUnavailable
from tests.dashboard.seeding import REFERENCES, experiment, seed
from tests.integration.api.experiments.conftest import CONFIG, Asking

PATH = "/api/experiments"


async def test_a_configuration_becomes_an_experiment_whose_runs_are_requested(
    services: httpx.AsyncClient, store: SqlStore, broker: MemoryBroker
):
    answer = await services.post(PATH, json=CONFIG)

    assert answer.status_code == 202
    told = answer.json()
    assert (told["planned"], told["already_done"], told["requested"]) == (30, 0, 30)
    assert told["notes"] == []
    assert answer.headers["location"] == f"{PATH}/{told['experiment_id']}"
    assert broker.outstanding == 30
    stored = await store.experiment(told["experiment_id"])
    assert stored is not None
    assert stored.submitted
    assert (await services.get(answer.headers["location"])).json()["state"] == "running"


async def test_the_same_request_again_names_the_same_experiment(
    services: httpx.AsyncClient, store: SqlStore
):
    first, second = await asyncio.gather(
        services.post(PATH, json=CONFIG), services.post(PATH, json=CONFIG)
    )
    third = await services.post(PATH, json={**CONFIG, "deadline_hours": 48})

    ids = {each.json()["experiment_id"] for each in (first, second, third)}
    assert len(ids) == 1
    [stored] = await store.experiments()
    assert stored.manifest.deadline_hours == 48


async def test_what_is_done_is_not_requested_again(
    services: httpx.AsyncClient, store: SqlStore, broker: MemoryBroker
):
    planned = experiment(REFERENCES[:1])
    await seed(store, planned, share=0.5, failing=0.0)

    answer = await services.post(PATH, json=planned.manifest.model_dump(mode="json"))

    told = answer.json()
    assert told["experiment_id"] == planned.experiment_id
    assert (told["planned"], told["already_done"], told["requested"]) == (45, 22, 23)


async def test_every_mistake_is_told_with_its_line(services: httpx.AsyncClient):
    body = '{\n  "models": [\n    "nobody/a",\n    "reference/none"\n  ],\n  "repeat": 3\n}'

    answer = await services.post(PATH, content=body, headers={"content-type": "application/json"})

    assert answer.status_code == 422
    problem = answer.json()
    lines = [(each["line"], each["place"]) for each in problem["mistakes"]]
    assert lines == [
        (3, "configuration line 3, models[0]"),
        (4, "configuration line 4, models[1]"),
        (6, "configuration line 6, repeat"),
    ]
    assert "did you mean" in problem["mistakes"][2]["problem"]
    assert problem["detail"].endswith("(and 2 more, in `mistakes`)")


async def test_without_a_broker_the_answer_says_what_to_do(asking: Asking, store: SqlStore):
    async with asking() as client:
        answer = await client.post(PATH, json=CONFIG)

    assert answer.status_code == 409
    assert "SOCRATIC_BROKER_URL" in answer.json()["detail"]
    assert "socratic-bench submit" in answer.json()["detail"]
    assert await store.outlines() == []


@pytest.mark.parametrize("state", ["paused", "cancelled"])
async def test_a_stopped_experiment_is_not_planned(services: httpx.AsyncClient, state: str):
    experiment_id = (await services.post(PATH, json=CONFIG)).json()["experiment_id"]
    stopped = await services.patch(f"{PATH}/{experiment_id}", json={"state": state})
    assert stopped.json() == {"experiment_id": experiment_id, "state": state}

    answer = await services.post(PATH, json=CONFIG)

    assert answer.status_code == 409
    assert f"is {state}" in answer.json()["detail"]


async def test_a_broker_that_is_away_loses_nothing(
    asking: Asking, store: SqlStore, broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
):
    async with asking(Capabilities(broker)) as client:
        with monkeypatch.context() as patched:
            patched.setattr(broker, "publish", _unavailable)
            away = await client.post(PATH, json=CONFIG)
        back = await client.post(PATH, json=CONFIG)

    assert away.status_code == 503
    assert "retry-after" in away.headers
    assert "secret-host" not in away.text
    assert back.json()["requested"] == 30


async def _unavailable(*_: Any) -> None:
    raise BrokerUnavailable("secret-host refused")


async def test_a_long_plan_goes_on_after_the_answer(
    asking: Asking, broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("socratic_api.background_tasks.PLANNED_WITHIN", 0.0)
    go_on, publish = asyncio.Event(), broker.publish

    async def waiting(*messages: Any) -> None:
        await go_on.wait()
        await publish(*messages)

    monkeypatch.setattr(broker, "publish", waiting)
    async with asking(Capabilities(broker)) as client:
        begun = await client.post(PATH, json=CONFIG)
        shown = await client.get(begun.headers["location"])
        other = await client.post(PATH, json={**CONFIG, "deadline_hours": 48})
        monkeypatch.setattr("socratic_api.background_tasks.PLANNED_WITHIN", 10.0)
        joined = asyncio.create_task(client.post(PATH, json=CONFIG))
        await asyncio.sleep(0)
        go_on.set()
        ended = (await joined).json()

    assert begun.status_code == 202
    assert begun.json()["requested"] is None
    assert shown.json()["left"] == 30, "it stands in the store before its runs are requested"
    assert other.status_code == 409, "another deadline waits for the end of the plan"
    assert ended["requested"] == 30


def in_a_function(broker: MemoryBroker) -> Capabilities:
    return Capabilities(broker, may_stream=False, outlives_answers=False)


async def test_a_function_starts_nothing_before_it_has_looked_for_paid_answers(
    asking: Asking, store: SqlStore, broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
):
    """An experiment in the store is what the reconciler requests the runs of."""
    cancelled = []

    async def endless(*_: Any, **__: Any) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async with asking(in_a_function(broker)) as client:
        with monkeypatch.context() as patched:
            patched.setattr("socratic_api.background_tasks.look_into", endless)
            patched.setattr("socratic_api.background_tasks.REGISTERED_WITHIN", 0.5)
            late = await client.post(PATH, json=CONFIG)
        assert (late.status_code, cancelled) == (503, [True])
        assert late.headers["retry-after"] == "1"
        assert "socratic-bench submit" in late.json()["detail"]
        assert await store.outlines() == []
        assert await store.running() == []
        assert broker.outstanding == 0

        again = await client.post(PATH, json=CONFIG)
    assert (again.status_code, again.json()["requested"]) == (202, 30)


async def test_a_function_leaves_a_long_plan_to_the_reconciler(
    asking: Asking, store: SqlStore, broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("socratic_api.background_tasks.PLANNED_IN_FUNCTION", 0.0)
    published = asyncio.Event()

    async def waiting(*_: Any) -> None:
        await published.wait()

    monkeypatch.setattr(broker, "publish", waiting)
    async with asking(in_a_function(broker)) as client:
        answer = await client.post(PATH, json=CONFIG)
        assert not [each for each in asyncio.all_tasks() if each.get_name().startswith("plan of")]

    assert (answer.status_code, answer.json()["requested"]) == (202, None)
    [running] = await store.running()
    assert running.planned_at is None


async def test_a_function_takes_no_plan_that_the_scheduler_could_not_complete(
    asking: Asking, store: SqlStore, broker: MemoryBroker
):
    async with asking(Capabilities(broker, most_runs=29)) as client:
        answer = await client.post(PATH, json=CONFIG)
    assert answer.status_code == 422
    assert "plans 30 runs; at most 29" in answer.json()["detail"]
    assert await store.outlines() == []
