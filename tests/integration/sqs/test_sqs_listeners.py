"""The queues of listeners: gone with them, or an hour after they were killed."""

from __future__ import annotations

import time

import pytest

from socratic_bench.adapters.brokers.sqs.broker import SqsBroker
from socratic_bench.adapters.brokers.sqs.listener import (
    FORGOTTEN_SECONDS,
    PREFIX,
    ListenerQueue,
)

pytestmark = pytest.mark.long

NEWS = "test.news.v1"


class Clock:
    """A clock that a test moves on."""

    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        return self.now


async def _queues(broker: SqsBroker) -> list[str]:
    prefix = broker._connection.address.named(PREFIX)
    answer = await broker._connection.call("sqs", "list_queues", QueueNamePrefix=prefix)
    return list(answer.get("QueueUrls", ()))


async def _subscriptions(broker: SqsBroker) -> int:
    answer = await broker._connection.call(
        "sns", "list_subscriptions_by_topic", TopicArn=broker._topics[NEWS]
    )
    return len(answer["Subscriptions"])


@pytest.fixture
async def topics(broker: SqsBroker) -> list[str]:
    await broker.declare([], [NEWS])
    return [broker._topics[NEWS]]


async def test_a_listener_that_ends_leaves_nothing_behind(
    broker: SqsBroker, topics: list[str]
) -> None:
    async with broker.listen(NEWS):
        assert [len(await _queues(broker)), await _subscriptions(broker)] == [1, 1]
    assert [await _queues(broker), await _subscriptions(broker)] == [[], 0]


async def test_what_a_killed_listener_left_behind_is_deleted_by_a_later_one(
    broker: SqsBroker, topics: list[str]
) -> None:
    clock = Clock()
    killed = await ListenerQueue(broker._connection, topics, now=clock).open()
    clock.now += FORGOTTEN_SECONDS + 1
    later = ListenerQueue(broker._connection, topics, now=clock)
    queue = await later.open()
    assert await _queues(broker) == [queue.url] != [killed.url]
    assert await _subscriptions(broker) == 1
    await later.delete()


async def test_a_listener_that_is_still_there_keeps_its_queue(
    broker: SqsBroker, topics: list[str]
) -> None:
    clock = Clock()
    first = ListenerQueue(broker._connection, topics, now=clock)
    await first.open()
    for _ in range(4):
        clock.now += FORGOTTEN_SECONDS / 2
        await first.renew()
    later = ListenerQueue(broker._connection, topics, now=clock)
    await later.open()
    assert [len(await _queues(broker)), await _subscriptions(broker)] == [2, 2]
    await first.delete()
    await later.delete()
    assert await _queues(broker) == []
