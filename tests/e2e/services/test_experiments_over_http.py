"""An experiment over HTTP alone, carried out by real services: submit, follow, delete."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from socratic_bench.addresses import open_broker
from socratic_bench.consuming.queues import BROADCASTS, JUDGE_RESPONSE_RECORDED, WORK_QUEUES
from socratic_bench.events.codec import Message
from tests.e2e.conftest import Addresses
from tests.e2e.service_processes import all_ready
from tests.waiting import PATIENCE, until, waiting_for

pytestmark = pytest.mark.connected

KINDS = ("api", "runner", "judge", "curator")
CONFIG = {
    "models": [
        "reference/socratic",
        {"id": "reference/lecturer", "options": {"latency_ms": 20}},
        "reference/faulty",
    ],
    "repeats": 2,
}
EXPERIMENTS = "/api/experiments"


async def details(client: httpx.AsyncClient, path: str) -> AsyncIterator[dict[str, Any]]:
    """The details of an experiment, as its stream sends them."""
    async with client.stream("GET", f"{path}/events") as answer:
        async for line in answer.aiter_lines():
            name, _, value = line.partition(": ")
            if name == "data":
                yield json.loads(value)


async def test_an_experiment_is_submitted_followed_to_its_end_and_deleted_over_http(
    environment: dict[str, str],
):
    async with all_ready(environment, *KINDS) as services:
        address = (await services["api"].logged("serving"))["address"]
        async with httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client:
            submitted = await client.post(EXPERIMENTS, json=CONFIG)
            assert submitted.status_code == 202, submitted.text
            path = submitted.headers["location"]
            seen = []
            async with waiting_for("the completion of the experiment"):
                async for detail in details(client, path):
                    seen.append(detail)
                    if detail["state"] == "complete":
                        break
            again = (await client.post(EXPERIMENTS, json=CONFIG)).json()
            deleted = await client.delete(path)
            gone = await client.get(path)
            left = (await client.get(EXPERIMENTS)).json()["total"]

    last = seen[-1]
    progress = [detail["done"] for detail in seen]
    assert progress == sorted(progress)
    assert (last["done"], last["left"]) == (90, 0)
    faulty = last["models_progress"][2]
    assert faulty["failed"] > 0
    assert all(faulty["failure_examples"].values())
    assert again["requested"] == 0
    assert deleted.json()["rows_left"] is False
    assert gone.status_code == 404
    assert left == 0


async def test_a_dead_letter_is_shown_redriven_and_back_with_its_reason(
    environment: dict[str, str], addresses: Addresses
):
    queue = JUDGE_RESPONSE_RECORDED
    poison = Message(id="poison-1", type=queue.event_type, group="model/a", body=b"no event")
    broker = open_broker(addresses["SOCRATIC_BROKER_URL"])
    try:
        async with all_ready(environment, "api", "judge") as services:
            address = (await services["api"].logged("serving"))["address"]
            async with httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client:

                async def letters() -> list[dict[str, Any]]:
                    queues = (await client.get("/api/dead-letters")).json()["queues"]
                    return [letter for each in queues for letter in each["letters"]]

                await broker.declare(WORK_QUEUES, BROADCASTS)
                await broker.publish([poison])
                [first] = await until(letters, bool, "the dead letter")
                redriven = await client.post("/api/dead-letters/redrive", json={})
                [second] = await until(letters, bool, "the dead letter, again")
    finally:
        await broker.close()

    assert redriven.json()["put_back"][queue.name] == 1
    assert first["id"] == second["id"] == "poison-1"
    assert first["reason"]
