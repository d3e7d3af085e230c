"""Records of Lambda events are deliveries, settled by a partial batch response."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import AsyncMock

import pytest

from socratic_bench.adapters.brokers.sqs.broker import SqsBroker
from socratic_bench.adapters.brokers.sqs.copies import Copies
from socratic_bench.adapters.brokers.sqs.sender import Claims
from socratic_bench.adapters.brokers.sqs.wire import WireState
from socratic_bench.concurrency.deadlines import cancelled
from socratic_bench.consuming.outcomes import Ack, DeadLetterIt, RetryLater
from socratic_bench.errors import BrokerUnavailable
from socratic_bench.ports.broker import SUSPECT_AFTER, WorkQueue, ended_alone
from tests.contract.broker.traffic import Traffic, ids, message, messages, new_queue

pytestmark = pytest.mark.long


async def _event(broker: SqsBroker, queue: WorkQueue) -> list[dict[str, Any]]:
    """What Lambda would poll: the visible messages, as records of an event."""
    answer = await broker._connection.call(
        "sqs",
        "receive_message",
        QueueUrl=broker._queue(queue.name).queue.url,
        MaxNumberOfMessages=10,
        MessageAttributeNames=["All"],
        MessageSystemAttributeNames=["All"],
    )
    return [
        {
            "messageId": each["MessageId"],
            "receiptHandle": each["ReceiptHandle"],
            "body": each["Body"],
            "attributes": each["Attributes"],
            "messageAttributes": {
                name: {"stringValue": value["StringValue"], "dataType": value["DataType"]}
                for name, value in each.get("MessageAttributes", {}).items()
            },
        }
        for each in answer.get("Messages", ())
    ]


async def _end(
    broker: SqsBroker,
    queue: WorkQueue,
    event: list[dict[str, Any]],
    response: dict[str, list[dict[str, str]]],
) -> None:
    """What Lambda does with a response: delete what succeeded, show what failed."""
    failed = {each["itemIdentifier"] for each in response["batchItemFailures"]}
    handles = {each["messageId"]: each["receiptHandle"] for each in event}
    server_queue = broker._queue(queue.name).queue
    await server_queue.delete([handles[each] for each in handles.keys() - failed])
    await server_queue.show_in(0, [handles[each] for each in failed])


async def test_every_settlement_of_a_record_is_done(
    broker: SqsBroker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish(messages(queue, 4))
    event = await _event(broker, queue)
    batch = broker.records(queue.name)
    done, again, later, broken = await batch.take(event)
    await batch.settle(
        [
            Ack(done),
            RetryLater(again, 0, "again"),
            RetryLater(later, 0, "not now", counted=False),
            DeadLetterIt(broken, "cannot read"),
        ]
    )
    assert batch.response() == {"batchItemFailures": []}
    await _end(broker, queue, event, batch.response())
    async with broker.consume(queue.name, prefetch=9) as consumer:
        attempts = {each.message.id: each.attempt for each in await traffic.take(consumer, 2)}
    assert attempts == {again.message.id: 2, later.message.id: 1}
    [letter] = await broker.dead_letters(queue.name)
    assert (letter.message, letter.reason) == (broken.message, "cannot read")


async def test_only_records_that_are_unsettled_fail(broker: SqsBroker) -> None:
    queue = new_queue(batch=2)
    await broker.declare([queue])
    await broker.publish(messages(queue, 6))
    event = await _event(broker, queue)
    batch = broker.records(queue.name)
    deliveries = await batch.take(event)
    assert sorted(ids(deliveries)) == ids(messages(queue, 6))
    await batch.settle([Ack(each) for each in deliveries[:3]])
    failed = [each["itemIdentifier"] for each in batch.response()["batchItemFailures"]]
    assert sorted(failed) == sorted(each["messageId"] for each in event[1:])


async def test_nothing_settled_is_everything_failed(broker: SqsBroker, queue: WorkQueue) -> None:
    await broker.publish(messages(queue, 3))
    event = await _event(broker, queue)
    batch = broker.records(queue.name)
    await batch.take(event)
    failed = {each["itemIdentifier"] for each in batch.response()["batchItemFailures"]}
    assert failed == {each["messageId"] for each in event}


async def test_records_whose_taking_is_cancelled_fail(
    broker: SqsBroker, queue: WorkQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    await broker.publish(messages(queue, 3))
    event = await _event(broker, queue)
    reading = asyncio.Event()

    async def read_for_ever(*_: Any) -> None:
        reading.set()
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(Claims, "messages_of", read_for_ever)
    batch = broker.records(queue.name)
    taking = asyncio.create_task(batch.take(event))
    await reading.wait()
    await cancelled(taking)
    failed = {each["itemIdentifier"] for each in batch.response()["batchItemFailures"]}
    assert failed == {each["messageId"] for each in event}


async def test_a_record_that_is_put_back_is_never_a_suspect(
    broker: SqsBroker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish(messages(queue, 2))
    for _ in range(SUSPECT_AFTER + 1):
        event = await _event(broker, queue)
        batch = broker.records(queue.name)
        await batch.take(event)
        await batch.put_back()
        assert batch.response() == {"batchItemFailures": []}
        await _end(broker, queue, event, batch.response())
    async with broker.consume(queue.name, prefetch=9) as consumer:
        deliveries = await traffic.take(consumer, 2)
    assert [(each.attempt, each.suspect) for each in deliveries] == [(1, False)] * 2


async def test_what_is_settled_is_not_put_back_and_what_cannot_be_put_back_fails(
    broker: SqsBroker, queue: WorkQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    await broker.publish(messages(queue, 3))
    event = await _event(broker, queue)
    batch = broker.records(queue.name)
    done, *left = await batch.take(event)
    await batch.settle([Ack(done)])
    monkeypatch.setattr(Copies, "copy_back", AsyncMock(side_effect=BrokerUnavailable("away")))
    await batch.put_back()
    assert len(batch.response()["batchItemFailures"]) == len(left)


async def test_a_record_that_is_not_due_goes_back_uncounted(
    broker: SqsBroker, queue: WorkQueue, traffic: Traffic
) -> None:
    declared = broker._queue(queue.name)
    copies = Copies(broker._sender, declared.work, declared.queue, declared.dead)
    await copies.again([message(queue, 1)], WireState(due=copies._now() + 3_000))
    event = await _event(broker, queue)
    batch = broker.records(queue.name)
    assert await batch.take(event) == []
    assert batch.response() == {"batchItemFailures": []}
    await traffic.until_depth(broker, queue, 1)
    assert await _event(broker, queue) == []


async def test_a_poisoned_record_ends_alone_and_fails_no_other(
    broker: SqsBroker, queue: WorkQueue, traffic: Traffic
) -> None:
    await broker.publish(messages(queue, 5))
    done: set[str] = set()
    crashes = 0
    while not (letters := await broker.dead_letters(queue.name)):
        event = await _event(broker, queue)
        batch = broker.records(queue.name)
        deliveries = await batch.take(event)
        if any(each.message.id == "model/3" for each in deliveries):
            crashes += 1  # the function ends before it answers: every record comes back
            server_queue = broker._queue(queue.name).queue
            await server_queue.show_in(0, [each["receiptHandle"] for each in event])
            continue
        await batch.settle([Ack(each) for each in deliveries])
        done.update(ids(deliveries))
        await _end(broker, queue, event, batch.response())
    assert [(each.message.id, each.reason) for each in letters] == [
        ("model/3", ended_alone(SUSPECT_AFTER))
    ]
    assert crashes == 2 * SUSPECT_AFTER
    await _finish(broker, queue, done)
    assert done == {"model/0", "model/1", "model/2", "model/4"}


async def _finish(broker: SqsBroker, queue: WorkQueue, done: set[str]) -> None:
    while event := await _event(broker, queue):
        batch = broker.records(queue.name)
        deliveries = await batch.take(event)
        await batch.settle([Ack(each) for each in deliveries])
        done.update(ids(deliveries))
        await _end(broker, queue, event, batch.response())
