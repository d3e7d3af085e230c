"""Dead letters over HTTP: listed with their reasons, and put back."""

from __future__ import annotations

import httpx

from socratic_bench.adapters.brokers.memory.broker import MemoryBroker
from socratic_bench.consuming.queues import JUDGE_RESPONSE_RECORDED
from socratic_bench.events.codec import Message

QUEUE = JUDGE_RESPONSE_RECORDED.name
PATH = "/api/dead-letters"


async def leave_dead_letter(broker: MemoryBroker, reason: str) -> None:
    message = Message(
        id="m-1", type=JUDGE_RESPONSE_RECORDED.event_type, group="model/a", body=b"poison"
    )
    await broker.publish([message])
    async with broker.consume(QUEUE, prefetch=1) as consumer:
        [delivery] = await consumer.receive(1)
        await consumer.reject(delivery, reason)


async def test_dead_letters_are_listed_and_redriven(
    services: httpx.AsyncClient, broker: MemoryBroker
):
    await leave_dead_letter(broker, "not an event:\nline two")

    listed = (await services.get(PATH)).json()["queues"]
    redriven = await services.post(f"{PATH}/redrive", json={"queue": QUEUE})
    after = (await services.get(PATH)).json()["queues"]

    found = {each["queue"]: each for each in listed}
    assert {name: each["waiting"] for name, each in found.items() if each["waiting"]} == {QUEUE: 1}
    [letter] = found[QUEUE]["letters"]
    assert letter == {
        "id": "m-1",
        "type": JUDGE_RESPONSE_RECORDED.event_type,
        "group": "model/a",
        "attempts": 1,
        "reason": "not an event: line two",
    }
    assert redriven.json() == {"put_back": {QUEUE: 1}}
    assert not any(each["waiting"] for each in after)


async def test_a_wrong_redrive_is_told(services: httpx.AsyncClient):
    bodies: list[object] = [{"queue": "none"}, {"limit": 0}, {"queues": 1}, [], "a"]
    for body in bodies:
        assert (await services.post(f"{PATH}/redrive", json=body)).status_code == 422, body


async def test_without_a_broker_dead_letters_are_unknown_and_not_none(client: httpx.AsyncClient):
    listed = await client.get(PATH)
    redriven = await client.post(f"{PATH}/redrive", json={})

    assert listed.json() == {"queues": None}
    assert redriven.status_code == 409
    assert "SOCRATIC_BROKER_URL" in redriven.json()["detail"]
