"""The queue of each group: its declaration, its consumers, and the effect of a broken one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import count

import pytest
from aio_pika import Message
from aio_pika.message import IncomingMessage
from aiormq.abc import FieldTable
from yarl import URL

from socratic_bench.adapters.brokers.rabbitmq import declaring, topology
from socratic_bench.adapters.brokers.rabbitmq import listener as listening
from socratic_bench.adapters.brokers.rabbitmq.broker import RabbitMQBroker
from socratic_bench.adapters.brokers.rabbitmq.connection import connect
from socratic_bench.ports.broker import Consumer, Delivery, WorkQueue
from tests.contract.broker.traffic import Traffic, ids, message, new_queue
from tests.integration.rabbitmq.conftest import stranger
from tests.servers.rabbitmq import delete
from tests.waiting import waiting_for

GROUPS = ("a", "b", "c")


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declaring, "WATCH_SECONDS", 0.1)
    monkeypatch.setattr(listening, "BIND_SECONDS", 0.1)


@pytest.fixture
def queue() -> WorkQueue:
    return new_queue(separate_groups=True)


@pytest.fixture
async def brokers(url: str, queue: WorkQueue) -> AsyncIterator[list[RabbitMQBroker]]:
    """Two of them: one process that publishes, and one that consumes."""
    opened = [RabbitMQBroker(url), RabbitMQBroker(url)]
    for each in opened:
        await each.declare([queue])
    yield opened
    for each in opened:
        await each.close()
    await delete(url, [queue], GROUPS)


def group_queue(url: str, queue: WorkQueue, group: str) -> str:
    return topology.group_queue(topology.named(queue.name, URL(url).query["namespace"]), group)


async def test_a_consumer_serves_the_groups_it_is_told_of_whoever_declares_them_first(
    brokers: list[RabbitMQBroker], queue: WorkQueue, traffic: Traffic
) -> None:
    publisher, other = brokers
    await publisher.publish([message(queue, 1, "a")])
    async with other.consume(queue.name, prefetch=9, prefetch_per_group=3) as consumer:
        assert await traffic.receives_nothing(consumer)
        consumer.serve(["a", "b"])
        assert ids(await traffic.take(consumer, 1)) == ["a/1"]
        await publisher.publish([message(queue, 1, "b")])
        assert ids(await traffic.take(consumer, 1)) == ["b/1"]


async def test_a_consumer_hears_of_a_group_that_another_process_publishes_to(
    brokers: list[RabbitMQBroker],
    queue: WorkQueue,
    traffic: Traffic,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(declaring, "ANNOUNCE_SECONDS", 0.0)
    publisher, other = brokers
    async with other.consume(queue.name, prefetch=9) as consumer:
        consumer.serve(["a"])
        await publisher.publish([message(queue, 1, "a")])
        assert ids(await traffic.take(consumer, 1)) == ["a/1"]
        hearing = asyncio.create_task(consumer.heard_of_group())
        await publisher.publish([message(queue, 2, "a")])
        assert ids(await traffic.take(consumer, 1)) == ["a/2"]
        assert not hearing.done(), "the consumer serves that group"
        await publisher.publish([message(queue, 1, "b")])
        await traffic.finish(hearing)
        consumer.serve(["a", "b"])
        assert ids(await traffic.take(consumer, 1)) == ["b/1"]


@pytest.mark.long
async def test_a_publisher_announces_a_group_once_a_second_at_most(
    brokers: list[RabbitMQBroker], queue: WorkQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(declaring, "ANNOUNCE_SECONDS", 600.0)
    publisher, _ = brokers
    groups = publisher._queue(queue.name).groups
    assert groups.to_announce(["a", "b"]) == ["a", "b"]
    assert groups.to_announce(["a", "c"]) == ["c"]
    groups.forget("a")
    assert groups.to_announce(["a", "c"]) == ["a"]


@pytest.mark.long
async def test_what_is_no_announcement_is_ignored(
    url: str, brokers: list[RabbitMQBroker], queue: WorkQueue, traffic: Traffic
) -> None:
    publisher, other = brokers
    async with other.consume(queue.name, prefetch=9) as consumer, stranger(url) as channel:
        consumer.serve(["a"])
        await publisher.publish([message(queue, 1, "a")])
        await traffic.take(consumer, 1)
        namespace = URL(url).query["namespace"]
        exchange = await channel.get_exchange(topology.events_exchange(namespace))
        key = topology.announcements(topology.named(queue.name, namespace))
        for body in (b"\xff", b"{}", b"[1, null]"):
            await exchange.publish(Message(body), routing_key=key, mandatory=False)
        await publisher.publish([message(queue, 1, "b")])
        async with waiting_for("the group to be heard of"):
            await consumer.heard_of_group()
        assert other.problems() == []


@pytest.mark.long
async def test_a_group_that_is_not_named_any_more_is_left_to_others(
    brokers: list[RabbitMQBroker], queue: WorkQueue, traffic: Traffic
) -> None:
    publisher, other = brokers
    async with other.consume(queue.name, prefetch=9) as consumer:
        consumer.serve(["a", "b"])
        await publisher.publish([message(queue, 1, "a"), message(queue, 1, "b")])
        in_hand = await traffic.take(consumer, 2)
        consumer.serve(["b"])

        async def served() -> bool:
            return group_queue_names(consumer._intake._sources.consumed) == {"b"}

        await traffic.until_is(served, True)
        await publisher.publish([message(queue, 2, "a"), message(queue, 2, "b")])
        await consumer.ack(in_hand)
        assert ids(await traffic.take(consumer, 1)) == ["b/2"]
        assert await traffic.receives_nothing(consumer)
        await traffic.until_is(lambda: publisher.depth(queue.name, "a"), 1)


def group_queue_names(consumed: dict[str, list[str]]) -> set[str]:
    readable = {name.rpartition(".")[2].rpartition("-")[0] for name in consumed}
    return readable - {""}


async def test_a_group_queue_that_was_deleted_comes_back_and_stops_no_other(
    url: str, brokers: list[RabbitMQBroker], queue: WorkQueue, traffic: Traffic
) -> None:
    publisher, other = brokers
    async with other.consume(queue.name, prefetch=9) as consumer, stranger(url) as channel:
        consumer.serve(["a", "b"])
        # Two of each in hand: the consumer is sent as many ahead as it may have.
        both = [message(queue, number, group) for group in "ab" for number in (1, 2)]
        await publisher.publish(both)
        in_hand = await traffic.take(consumer, 4)
        await channel.queue_delete(group_queue(url, queue, "a"))
        await publisher.publish([message(queue, 3, "b")])
        again = await traffic.take(consumer, 1)
        assert ids(again) == ["b/3"]
        await consumer.ack([each for each in [*in_hand, *again] if each.message.group == "b"])
        assert await published_until_received(publisher, consumer, queue, "a")


async def published_until_received(
    publisher: RabbitMQBroker, consumer: Consumer, queue: WorkQueue, group: str
) -> str:
    """A message published during the deletion of a queue may be lost with the queue."""
    receiving = asyncio.ensure_future(consumer.receive(1))
    async with waiting_for("a group to flow again"):
        for number in count(100):
            await publisher.publish([message(queue, number, group)])
            await asyncio.wait({receiving}, timeout=0.1)
            if receiving.done():
                break
    return ids(receiving.result())[0]


@pytest.mark.long
async def test_a_group_queue_that_was_declared_differently_stops_no_other_and_is_named(
    url: str, brokers: list[RabbitMQBroker], queue: WorkQueue, traffic: Traffic
) -> None:
    publisher, other = brokers
    broken = group_queue(url, queue, "b")
    async with stranger(url) as channel:
        arguments = {**topology.GROUP_QUEUE_ARGUMENTS, "x-delivery-limit": 5}
        await channel.declare_queue(broken, durable=True, arguments=arguments)
    async with other.consume(queue.name, prefetch=9) as consumer:
        consumer.serve(["a", "b", "c"])
        await publisher.publish([message(queue, 1, "a"), message(queue, 1, "c")])
        assert sorted(ids(await traffic.take(consumer, 2))) == ["a/1", "c/1"]
        [problem] = other.problems()
        assert broken in problem
        assert "declared differently" in problem


@pytest.mark.long
async def test_a_group_queue_of_an_earlier_version_is_used_as_it_is(
    url: str, brokers: list[RabbitMQBroker], queue: WorkQueue, traffic: Traffic
) -> None:
    publisher, other = brokers
    async with stranger(url) as channel:
        arguments: FieldTable = {"x-queue-type": "quorum", "x-delivery-limit": 1_000_000_000}
        await channel.declare_queue(group_queue(url, queue, "b"), durable=True, arguments=arguments)
    await publisher.publish([message(queue, 1, group) for group in GROUPS])
    async with other.consume(queue.name, prefetch=9) as consumer:
        consumer.serve(GROUPS)
        in_hand = await traffic.take(consumer, 3)
        assert sorted(ids(in_hand)) == ["a/1", "b/1", "c/1"]
        await consumer.ack(in_hand)
        assert other.problems() == []


async def test_a_queue_that_loses_everything_goes_on_and_so_do_listeners(
    url: str,
    brokers: list[RabbitMQBroker],
    queue: WorkQueue,
    traffic: Traffic,
) -> None:
    publisher, other = brokers
    await other.declare([], broadcasts=[queue.event_type])
    plain = WorkQueue(new_queue().name, queue.event_type)
    for each in brokers:
        await each.declare([plain])
    async with (
        other.consume(queue.name, prefetch=9) as consumer,
        other.consume(plain.name, prefetch=9) as plain_consumer,
        other.listen(queue.event_type) as listener,
    ):
        consumer.serve(["a"])
        await publisher.publish([message(queue, 1, "a")])
        for consuming in (consumer, plain_consumer):
            assert ids(await traffic.take(consuming, 1)) == ["a/1"]
        assert len(await traffic.hear(listener, 1)) == 1
        await delete(url, [queue, plain], ["a"])
        for consuming in (consumer, plain_consumer):
            assert await published_until_received(publisher, consuming, queue, "a")
        hearing = asyncio.create_task(traffic.hear(listener, 1))
        async with waiting_for("the listener to hear again"):
            while not hearing.done():
                await publisher.publish([message(queue, 3, "a")])
                await asyncio.wait({hearing}, timeout=0.05)
    await delete(url, [plain])


@pytest.mark.long
async def test_a_process_that_serves_no_group_counts_what_waits_in_those_it_is_told_of(
    brokers: list[RabbitMQBroker], queue: WorkQueue, traffic: Traffic
) -> None:
    publisher, other = brokers
    await publisher.publish([message(queue, number, group) for group in "ab" for number in (1, 2)])
    await traffic.until_is(lambda: other.depth(queue.name, groups=["a", "b", "nobody's"]), 4)
    await traffic.until_is(lambda: publisher.depth(queue.name, groups=["a"]), 4)


@pytest.mark.long
async def test_what_is_missing_is_found_without_anybody_publishing(
    url: str,
    queue: WorkQueue,
    brokers: list[RabbitMQBroker],
    traffic: Traffic,
) -> None:
    publisher, _ = brokers
    await publisher.publish([message(queue, 1, "a")])
    await traffic.until_is(lambda: publisher.depth(queue.name, "a"), 1)
    await delete(url, [queue], ["a"])
    await publisher._watch.look()
    async with stranger(url) as channel:
        name = topology.named(queue.name, URL(url).query["namespace"])
        for each in (*publisher._needed.names(), topology.dead_letter_queue(name)):
            await channel.declare_queue(each, passive=True)
    assert publisher.problems() == []


@pytest.mark.long
async def test_who_connects_just_after_a_queue_was_deleted_cuts_no_consumer_off(
    url: str, brokers: list[RabbitMQBroker], traffic: Traffic
) -> None:
    publisher, other = brokers
    plain = new_queue()
    for each in brokers:
        await each.declare([plain])
    address = URL(url)
    name = topology.named(plain.name, address.query["namespace"])
    connection = await connect(address.without_query_params("namespace"))
    async with other.consume(plain.name, prefetch=9) as consumer, stranger(url) as channel:
        await publisher.publish([message(plain, 1)])
        assert ids(await traffic.take(consumer, 1)) == ["model/1"]
        await channel.queue_delete(name)
        await publisher._needed.again(connection)
        assert await published_until_received(publisher, consumer, plain, "model")
    await connection.close()
    await delete(url, [plain])


@pytest.mark.long
async def test_a_few_messages_of_a_group_are_shared_by_several_consumers(
    url: str, traffic: Traffic
) -> None:
    queue = new_queue(separate_groups=True, batch=50)
    broker = RabbitMQBroker(url)
    try:
        await broker.declare([queue])
        async with (
            broker.consume(queue.name, prefetch=1) as one,
            broker.consume(queue.name, prefetch=1) as other,
        ):
            await broker.publish([message(queue, number, "a") for number in range(10)])
            for consumer in (one, other):
                await consumer.ack(await traffic.take(consumer, 1))
    finally:
        await broker.close()
        await delete(url, [queue], ["a"])


async def test_handled_messages_of_several_groups_are_acknowledged_with_one_frame(
    brokers: list[RabbitMQBroker],
    queue: WorkQueue,
    traffic: Traffic,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frames: list[bool] = []
    ack = IncomingMessage.ack

    async def counted(incoming: IncomingMessage, multiple: bool = False) -> None:
        frames.append(multiple)
        await ack(incoming, multiple)

    monkeypatch.setattr(IncomingMessage, "ack", counted)
    # Announcements are deliveries of the same channel, which need no acknowledgement.
    monkeypatch.setattr(declaring, "ANNOUNCE_SECONDS", 0.0)
    publisher, other = brokers
    sent = [message(queue, number, group) for number in range(6) for group in "ab"]
    async with other.consume(queue.name, prefetch=99) as consumer:
        consumer.serve(["a", "b"])
        for some in (sent[:6], sent[6:]):
            await publisher.publish(some)
            in_hand = await traffic.take(consumer, 6)
            await consumer.ack(in_hand)
        kept = await _two_in_hand(publisher, consumer, queue, traffic)
        await consumer.ack(kept[1:])
    assert frames == [True, True, False]
    async with publisher.consume(queue.name, prefetch=9) as consumer:
        consumer.serve(["a", "b"])
        [again] = await traffic.take(consumer, 1)
        assert again.message.id == kept[0].message.id
        await consumer.ack([again])
    await traffic.until_depth(publisher, queue, 0)


async def _two_in_hand(
    publisher: RabbitMQBroker, consumer: Consumer, queue: WorkQueue, traffic: Traffic
) -> list[Delivery]:
    await publisher.publish([message(queue, 7, "a")])
    first = await traffic.take(consumer, 1)
    await publisher.publish([message(queue, 8, "a")])
    return first + await traffic.take(consumer, 1)
