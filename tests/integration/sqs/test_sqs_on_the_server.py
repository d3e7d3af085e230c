"""What is on the server: names, policies, attributes, groups; and what a deployment made stays."""

from __future__ import annotations

import json
from typing import Any

import pytest

from socratic_bench.adapters.brokers.sqs import topology
from socratic_bench.adapters.brokers.sqs.address import LAST_RESORT_RECEIVES
from socratic_bench.adapters.brokers.sqs.broker import SqsBroker
from socratic_bench.events.codec import Message
from socratic_bench.ports.broker import WorkQueue
from tests.contract.broker.traffic import Traffic, ids, message, messages, new_queue

pytestmark = pytest.mark.long


async def _attributes(broker: SqsBroker, url: str) -> dict[str, str]:
    answer = await broker._connection.call(
        "sqs", "get_queue_attributes", QueueUrl=url, AttributeNames=["All"]
    )
    return dict(answer["Attributes"])


async def _raw(broker: SqsBroker, url: str) -> list[dict[str, Any]]:
    answer = await broker._connection.call(
        "sqs",
        "receive_message",
        QueueUrl=url,
        MaxNumberOfMessages=10,
        MessageAttributeNames=["All"],
        MessageSystemAttributeNames=["All"],
    )
    return list(answer.get("Messages", ()))


async def test_a_declared_queue_keeps_messages_long_and_has_dead_letters(
    broker: SqsBroker, queue: WorkQueue
) -> None:
    declared = broker._queue(queue.name)
    found = await _attributes(broker, declared.queue.url)
    assert found["MessageRetentionPeriod"] == str(14 * 24 * 3600)
    assert found["SqsManagedSseEnabled"] == "true"
    policy = json.loads(found["RedrivePolicy"])
    assert policy["deadLetterTargetArn"].endswith(f"-{queue.name}-dlq")
    assert int(policy["maxReceiveCount"]) == LAST_RESORT_RECEIVES


async def test_a_queue_that_a_deployment_made_stays_as_it_is(
    broker: SqsBroker, url: str, queue: WorkQueue
) -> None:
    declared = broker._queue(queue.name)
    await broker._connection.call(
        "sqs",
        "set_queue_attributes",
        QueueUrl=declared.queue.url,
        Attributes={"VisibilityTimeout": "1800"},
    )
    other = SqsBroker(url)
    try:
        await other.declare([queue])
    finally:
        await other.close()
    assert (await _attributes(broker, declared.queue.url))["VisibilityTimeout"] == "1800"


async def test_groups_are_message_groups_and_attributes_are_for_people(broker: SqsBroker) -> None:
    queue = new_queue(separate_groups=True, batch=10)
    await broker.declare([queue])
    await broker.publish([message(queue, 1, "provider/model"), message(queue, 2, "größer")])
    found = {
        each["MessageAttributes"]["ce-id"]["StringValue"]: each
        for each in await _raw(broker, broker._queue(queue.name).queue.url)
    }
    plain = found["provider/model/1"]
    assert plain["Attributes"]["MessageGroupId"] == "provider/model"
    assert plain["MessageAttributes"]["ce-type"]["StringValue"] == queue.event_type
    other = found["gr%C3%B6%C3%9Fer/2"]
    assert len(other["Attributes"]["MessageGroupId"]) == 64


async def test_500_events_are_few_requests(broker: SqsBroker, traffic: Traffic) -> None:
    queue = new_queue(batch=50)
    await broker.declare([queue])
    before = broker.requests
    await broker.publish(messages(queue, 500))
    async with broker.consume(queue.name, prefetch=1_000) as consumer:
        await consumer.ack(await traffic.take(consumer, 500))
    made = {
        name: count - before.get(name, 0)
        for name, count in broker.requests.items()
        if count > before.get(name, 0)
    }
    assert made["send_message_batch"] == 1
    assert made["delete_message_batch"] == 2  # one asks for the right
    assert made["receive_message"] <= 3


async def test_inspection_names_what_is_missing(broker: SqsBroker, queue: WorkQueue) -> None:
    assert await broker.inspect([queue]) == []
    await broker._connection.call(
        "sqs", "delete_queue", QueueUrl=broker._queue(queue.name).dead.url
    )
    [problem] = await broker.inspect([queue])
    assert f"{queue.name}-dlq" in problem
    [all_missing] = await broker.inspect([new_queue()])
    assert "all queues are missing" in all_missing


@pytest.mark.parametrize("dead", [False, True], ids=["queue", "dead-letters"])
async def test_a_deleted_queue_is_declared_again_by_its_users(
    broker: SqsBroker, queue: WorkQueue, traffic: Traffic, dead: bool
) -> None:
    async with broker.consume(queue.name, prefetch=1) as consumer:
        await broker.publish([message(queue, 1)])
        await consumer.ack(await traffic.take(consumer, 1))
        declared = broker._queue(queue.name)
        doomed = declared.dead if dead else declared.queue
        await broker._connection.call("sqs", "delete_queue", QueueUrl=doomed.url)
        await broker.publish([message(queue, 2)])
        taken = await traffic.take(consumer, 1)
        assert ids(taken) == ["model/2"]
        await consumer.reject(taken[0], "bad")
        assert await broker.dead_letter_depth(queue.name) == 1


async def test_looking_costs_no_dead_letter_that_a_redrive_policy_counts(
    broker: SqsBroker, queue: WorkQueue, traffic: Traffic
) -> None:
    declared = broker._queue(queue.name)
    async with broker.consume(queue.name, prefetch=2) as consumer:
        await broker.publish(messages(queue, 2))
        for delivery in await traffic.take(consumer, 2):
            await consumer.reject(delivery, "bad")
    trash = await topology.arn_of(broker._connection, declared.queue)
    await broker._connection.call(
        "sqs",
        "set_queue_attributes",
        QueueUrl=declared.dead.url,
        Attributes={
            "RedrivePolicy": json.dumps({"maxReceiveCount": 2, "deadLetterTargetArn": trash})
        },
    )
    looks = [await broker.dead_letters(queue.name) for _ in range(5)]
    assert looks == [looks[0]] * 5
    assert len(looks[0]) == 2


async def test_a_large_broadcast_is_heard(broker: SqsBroker, traffic: Traffic) -> None:
    await broker.declare([], ["test.news.v1"])
    news = [Message(f"news/{n}", "test.news.v1", "exp", b"x" * 50_000) for n in range(20)]
    async with broker.listen("test.news.v1") as listener:
        await broker.publish(news)
        assert sorted(await traffic.hear(listener, 20)) == sorted(news)
