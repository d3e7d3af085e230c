"""Queues that have lost their leader, on a server of our own: it tells nobody."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from socratic_bench.adapters.rabbitmq import intake, publisher, sources, topology, watch
from socratic_bench.adapters.rabbitmq.broker import RabbitMQBroker
from tests.contract.broker.traffic import Traffic, ids, message, new_queue
from tests.servers.discovery import NotHere, wait_for
from tests.servers.rabbitmq import check
from tests.servers.rabbitmq_process import RabbitMQProcess

QUEUE = new_queue(separate_groups=True)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMQProcess]:
    folder: Path = tmp_path_factory.mktemp("rabbitmq")
    try:
        started = RabbitMQProcess(folder)
    except NotHere as error:
        pytest.skip(str(error))
    started.start()
    wait_for(started.url, check)
    yield started
    started.kill()


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(intake, "AILING_SECONDS", 0.1)
    monkeypatch.setattr(publisher, "CONFIRM_SECONDS", 0.5)


@pytest.fixture
async def broker(server: RabbitMQProcess) -> AsyncIterator[RabbitMQBroker]:
    opened = RabbitMQBroker(server.url)
    await opened.declare([QUEUE])
    yield opened
    await opened.close()


async def lose_leader(server: RabbitMQProcess, group: str) -> str:
    name = topology.lane(QUEUE.name, group)
    code = f'ra:stop_server(quorum_queues, {{list_to_atom("%2F_{name}"), node()}}).'
    assert (await asyncio.to_thread(server.evaluate, code)).strip() == "ok"
    return name


async def test_a_consumer_of_a_lane_without_a_leader_goes_on_with_the_others_and_says_so(
    server: RabbitMQProcess, broker: RabbitMQBroker, traffic: Traffic
) -> None:
    await broker.publish([message(QUEUE, 1, "leads"), message(QUEUE, 1, "lost")])
    name = await lose_leader(server, "lost")

    async def problems() -> list[str]:
        return list(broker.problems())

    async with broker.consume(QUEUE.name, prefetch=9) as consumer:
        in_hand = await traffic.take(consumer, 1)
        assert ids(in_hand) == ["leads/1"]
        await traffic.until_is(problems, [f"queue {name!r} has no leader: nothing gets in or out"])
        await consumer.ack(in_hand)


async def test_a_lane_that_loses_its_leader_while_it_is_consumed_is_replaced(
    server: RabbitMQProcess,
    broker: RabbitMQBroker,
    traffic: Traffic,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sources, "REPLACE_SECONDS", 0.0)
    await broker.publish([message(QUEUE, 1, "other"), message(QUEUE, 1, "replaced")])

    async def problems() -> list[str]:
        return list(broker.problems())

    async with broker.consume(QUEUE.name, prefetch=9) as consumer:
        consumer.serve(["other", "replaced"])
        in_hand = await traffic.take(consumer, 2)
        others = [each for each in in_hand if each.message.group == "other"]
        await lose_leader(server, "replaced")
        publishing = asyncio.create_task(broker.publish([message(QUEUE, 2, "replaced")]))
        assert ids(await traffic.take(consumer, 1)) == ["replaced/2"]
        await traffic.finish(publishing)
        await consumer.ack(others)
        await traffic.until_is(problems, [])
