"""Queues that lost their leader, on a private server: it announces nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from socratic_bench.adapters.brokers.rabbitmq import declaring, health, intake, publishing, topology
from socratic_bench.adapters.brokers.rabbitmq.broker import RabbitMQBroker
from tests.contract.broker.traffic import Traffic, ids, message, new_queue
from tests.servers.rabbitmq_process import RabbitMQProcess

pytestmark = pytest.mark.long

QUEUE = new_queue(separate_groups=True)


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declaring, "WATCH_SECONDS", 0.1)
    monkeypatch.setattr(intake, "AILING_SECONDS", 0.1)
    monkeypatch.setattr(publishing, "CONFIRM_SECONDS", 0.5)


@pytest.fixture
async def broker(server: RabbitMQProcess) -> AsyncIterator[RabbitMQBroker]:
    opened = RabbitMQBroker(server.url)
    await opened.declare([QUEUE])
    yield opened
    await opened.close()


def problems_of(broker: RabbitMQBroker) -> Callable[[], Awaitable[list[str]]]:
    """Asks a broker for its queues with a problem."""

    async def problems() -> list[str]:
        return list(broker.problems())

    return problems


async def lose_leader(server: RabbitMQProcess, name: str) -> str:
    """Have a queue lose its leader for good; returns the name of the queue."""
    code = f'ra:stop_server(quorum_queues, {{list_to_atom("%2F_{name}"), node()}}).'
    assert (await asyncio.to_thread(server.evaluate, code)).strip() == "ok"
    return name


async def test_a_consumer_of_a_group_queue_without_a_leader_goes_on_with_the_others_and_says_so(
    server: RabbitMQProcess, broker: RabbitMQBroker, traffic: Traffic
) -> None:
    await broker.publish([message(QUEUE, 1, "leads"), message(QUEUE, 1, "lost")])
    name = await lose_leader(server, topology.group_queue(QUEUE.name, "lost"))

    async with broker.consume(QUEUE.name, prefetch=9) as consumer:
        in_hand = await traffic.take(consumer, 1)
        assert ids(in_hand) == ["leads/1"]
        await traffic.until_is(
            problems_of(broker), [f"queue {name!r} has no leader: nothing gets in or out"]
        )
        await consumer.ack(in_hand)


async def test_a_group_queue_that_loses_its_leader_while_it_is_consumed_is_replaced(
    server: RabbitMQProcess,
    broker: RabbitMQBroker,
    traffic: Traffic,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(health, "REPLACE_SECONDS", 0.0)
    await broker.publish([message(QUEUE, 1, "other"), message(QUEUE, 1, "replaced")])

    async with broker.consume(QUEUE.name, prefetch=9) as consumer:
        consumer.serve(["other", "replaced"])
        in_hand = await traffic.take(consumer, 2)
        others = [each for each in in_hand if each.message.group == "other"]
        await lose_leader(server, topology.group_queue(QUEUE.name, "replaced"))
        publishing = asyncio.create_task(broker.publish([message(QUEUE, 2, "replaced")]))
        assert ids(await traffic.take(consumer, 1)) == ["replaced/2"]
        await traffic.finish(publishing)
        await consumer.ack(others)
        await traffic.until_is(problems_of(broker), [])


async def test_a_queue_of_delayed_messages_without_a_leader_stops_nothing_else_and_is_replaced(
    server: RabbitMQProcess,
    broker: RabbitMQBroker,
    traffic: Traffic,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = await lose_leader(server, topology.delayed_queue(QUEUE.name))
    lost: list[object] = []

    async with broker.consume(QUEUE.name, prefetch=9) as consumer:
        connection = await broker._connection.connected()
        connection.close_callbacks.add(lambda *_: lost.append(connection))
        await traffic.until_is(problems_of(broker), [health.no_leader(name)])
        await broker.publish([message(QUEUE, 1, "a")])
        [delivery] = await traffic.take(consumer, 1)
        assert lost == []
        monkeypatch.setattr(health, "REPLACE_SECONDS", 0.0)
        await traffic.until_is(problems_of(broker), [])
        await consumer.retry(delivery, 0.05, "later")
        [again] = await traffic.take(consumer, 1)
        await consumer.ack([again])


async def test_a_queue_of_delayed_messages_that_loses_its_leader_while_consumed_is_noticed(
    server: RabbitMQProcess, broker: RabbitMQBroker, traffic: Traffic
) -> None:
    async with broker.consume(QUEUE.name, prefetch=9):
        await traffic.until_is(problems_of(broker), [])
        name = await lose_leader(server, topology.delayed_queue(QUEUE.name))
        await traffic.until_is(problems_of(broker), [health.no_leader(name)])
    await health.delete(broker._connection, name)


async def test_a_dead_letter_queue_without_a_leader_is_a_problem_and_can_be_asked_about(
    server: RabbitMQProcess,
    broker: RabbitMQBroker,
    traffic: Traffic,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(declaring, "PROBE_SECONDS", 0.1)
    name = await lose_leader(server, topology.dead_letter_queue(QUEUE.name))

    await traffic.until_is(problems_of(broker), [health.no_leader(name)])
    [sentence] = await broker.inspect([QUEUE])
    assert f"queue {name!r} has no leader" in sentence
    assert sentence.endswith("that loses its dead letters")
    assert await broker.dead_letters(QUEUE.name) == []
    assert await broker.redrive(QUEUE.name) == 0
    assert await broker.purge_dead_letters(QUEUE.name) == 0
    await health.delete(broker._connection, name)
    await traffic.until_is(lambda: broker.inspect([QUEUE]), [])
    await traffic.until_is(problems_of(broker), [])


async def test_a_dead_letter_queue_that_stays_without_a_leader_is_replaced(
    server: RabbitMQProcess,
    broker: RabbitMQBroker,
    traffic: Traffic,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(declaring, "PROBE_SECONDS", 0.1)
    name = await lose_leader(server, topology.dead_letter_queue(QUEUE.name))

    async def dead() -> list[str]:
        return [letter.message.id for letter in await broker.dead_letters(QUEUE.name)]

    async with broker.consume(QUEUE.name, prefetch=1) as consumer:
        await traffic.until_is(problems_of(broker), [health.no_leader(name)])
        await broker.publish([message(QUEUE, 1, "a")])
        [delivery] = await traffic.take(consumer, 1)
        monkeypatch.setattr(health, "REPLACE_SECONDS", 0.0)
        await traffic.finish(asyncio.create_task(consumer.reject(delivery, "broken")))
        await traffic.until_is(dead, [delivery.message.id])
        await traffic.until_is(problems_of(broker), [])
    await broker.purge_dead_letters(QUEUE.name)


async def test_queues_that_are_missing_are_named_and_one_sentence_says_that_all_are(
    server: RabbitMQProcess,
) -> None:
    broker = RabbitMQBroker(f"{server.url}?namespace=fresh")
    try:
        [sentence] = await broker.inspect([QUEUE])
        assert "all queues are missing" in sentence
        assert "guest" not in sentence
        await broker.declare([QUEUE])
        assert await broker.inspect([QUEUE]) == []
        name = topology.delayed_queue(f"fresh.{QUEUE.name}")
        await health.delete(broker._connection, name)
        [sentence] = await broker.inspect([QUEUE])
        assert sentence.startswith(f"queue {name!r} is missing: start the services")
    finally:
        await broker.close()
