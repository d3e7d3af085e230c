"""Rules that an operator sets, on a private server: policies, permissions, limits, time-outs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from yarl import URL

from socratic_bench.adapters.brokers.rabbitmq import health, publishing, topology
from socratic_bench.adapters.brokers.rabbitmq.broker import RabbitMQBroker
from socratic_bench.errors import BrokerRefused, BrokerUnavailable, MessageTooLarge
from socratic_bench.events.codec import Message
from tests.contract.broker.traffic import Traffic, ids, message, messages, new_queue
from tests.servers.rabbitmq_process import RabbitMQProcess
from tests.waiting import PATIENCE

pytestmark = pytest.mark.long

GUEST = "guest"


@pytest.fixture
async def vhost(server: RabbitMQProcess) -> AsyncIterator[str]:
    """A virtual host of its own; what a test sets there ends with it."""
    name = new_queue().name
    await control(server, "add_vhost", name)
    await control(server, "set_permissions", "-p", name, GUEST, ".*", ".*", ".*")
    yield name
    await control(server, "delete_vhost", name)


@pytest.fixture
async def broker(server: RabbitMQProcess, vhost: str) -> AsyncIterator[RabbitMQBroker]:
    opened = RabbitMQBroker(str(URL(server.url).with_path(f"/{vhost}")))
    yield opened
    await opened.close()


async def control(server: RabbitMQProcess, *words: str) -> str:
    return await asyncio.to_thread(server.control, *words)


async def policy(server: RabbitMQProcess, vhost: str, rules: str) -> None:
    """Set a policy on all queues, and wait until the queues have it."""
    await control(server, "set_policy", "-p", vhost, "rules", ".*", rules, "--apply-to", "queues")
    await asyncio.sleep(0.5)  # the server tells its queues of it, and nobody else


async def test_looking_at_dead_letters_costs_none_under_any_delivery_limit(
    server: RabbitMQProcess, vhost: str, broker: RabbitMQBroker, traffic: Traffic
) -> None:
    queue = new_queue()
    await broker.declare([queue])
    await policy(server, vhost, '{"delivery-limit": 0}')
    await broker.publish(messages(queue, 3))
    async with broker.consume(queue.name, prefetch=3) as consumer:
        for delivery in await traffic.take(consumer, 3):
            await consumer.reject(delivery, "unreadable")
    for _ in range(3):
        letters = await broker.dead_letters(queue.name)
        assert [each.message.id for each in letters] == [each.id for each in messages(queue, 3)]
        assert {each.reason for each in letters} == {"unreadable"}
    assert await broker.dead_letter_depth(queue.name) == 3


async def test_a_message_above_the_servers_size_is_kept_apart_and_the_others_arrive(
    server: RabbitMQProcess, broker: RabbitMQBroker, traffic: Traffic
) -> None:
    queue = new_queue(batch=10)
    await broker.declare([queue])
    size = (
        "application:set_env(rabbit, max_message_size, {0}), "
        "persistent_term:put(max_message_size, {0})."  # RabbitMQ 4
    )
    await control(server, "eval", size.format(2_000))
    try:
        large = Message("large", queue.event_type, "model", b"x" * 3_000)
        some = [
            Message(f"small-{number}", queue.event_type, "model", b"x" * 900) for number in range(5)
        ]
        with pytest.raises(MessageTooLarge, match=r"'large' of 3,000 bytes: .* takes 2,000 bytes"):
            await broker.publish([large, *some])
        async with broker.consume(queue.name, prefetch=9) as consumer:
            taken = await traffic.take(consumer, 5)
            assert set(ids(taken)) == {each.id for each in some}
            await consumer.ack(taken)
    finally:
        await control(server, "eval", size.format(134_217_728))


async def test_a_queue_that_a_policy_keeps_full_is_named_as_the_cause(
    server: RabbitMQProcess,
    vhost: str,
    broker: RabbitMQBroker,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(publishing, "REJECTED_SECONDS", 0.1)
    queue = new_queue()
    await broker.declare([queue])
    await policy(server, vhost, '{"max-length": 1, "overflow": "reject-publish"}')

    async def publish_one_by_one() -> None:
        for number in range(5):
            await broker.publish([message(queue, number)])

    with pytest.raises(BrokerUnavailable, match="full by a policy"):
        await publish_one_by_one()


async def test_a_queue_that_may_not_be_read_keeps_its_leader_and_says_so(
    server: RabbitMQProcess, vhost: str, broker: RabbitMQBroker, traffic: Traffic
) -> None:
    queue = new_queue()
    await broker.declare([queue])
    await control(server, "set_permissions", "-p", vhost, GUEST, ".*", ".*", "^$")
    names = topology.queues_of(queue)
    assert await health.leaderless(broker._connection, names) == set()
    async with broker.consume(queue.name, prefetch=1):
        async with asyncio.timeout(PATIENCE):
            while "access to queue" not in " ".join(broker.problems()):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
    await control(server, "set_permissions", "-p", vhost, GUEST, ".*", ".*", ".*")
    await broker.publish([message(queue, 1)])
    async with broker.consume(queue.name, prefetch=1) as consumer:
        await consumer.ack(await traffic.take(consumer, 1))


@pytest.mark.parametrize(
    ("limit", "words"),
    [('{"max-queues": 2}', "queue limit .* raise"), ('{"max-connections": 0}', "limit .* raise")],
)
async def test_a_limit_of_the_virtual_host_is_named(
    server: RabbitMQProcess, vhost: str, broker: RabbitMQBroker, limit: str, words: str
) -> None:
    await control(server, "set_vhost_limits", "-p", vhost, limit)
    with pytest.raises(BrokerRefused, match=words):
        await broker.declare([new_queue()])


async def test_a_message_that_outlasts_the_servers_time_out_makes_no_suspect(
    server: RabbitMQProcess, broker: RabbitMQBroker, traffic: Traffic
) -> None:
    settings = (
        "application:set_env(rabbit, consumer_timeout, {}), "
        "application:set_env(rabbit, channel_tick_interval, {})."
    )
    await control(server, "eval", settings.format(500, 100))
    try:
        queue = new_queue()
        await broker.declare([queue])
        await broker.publish([message(queue, 1)])
        async with broker.consume(queue.name, prefetch=9) as consumer:
            taken = [each for _ in range(7) for each in await traffic.take(consumer, 1)]
            assert {(each.attempt, each.suspect) for each in taken} == {(1, False)}
            await consumer.ack(taken[-1:])
    finally:
        await control(server, "eval", settings.format(1_800_000, 60_000))
