"""What is too large for SQS lies in S3."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from socratic_bench.adapters.brokers.sqs.broker import SqsBroker
from socratic_bench.errors import BrokerError
from socratic_bench.events.codec import Message
from socratic_bench.ports.broker import WorkQueue
from tests.contract.broker.traffic import Traffic, ids, message, messages

pytestmark = pytest.mark.long

LARGE = b"x" * (1024 * 1024)


@pytest.fixture
async def bucket(broker: SqsBroker) -> str:
    name = str(broker._connection.address.bucket)
    await broker._connection.call("s3", "create_bucket", Bucket=name)
    return name


async def _keys(broker: SqsBroker, bucket: str) -> list[str]:
    listed = await broker._connection.call("s3", "list_objects_v2", Bucket=bucket)
    return [str(each["Key"]) for each in listed.get("Contents", ())]


async def test_a_large_message_arrives_as_it_was_published(
    broker: SqsBroker, queue: WorkQueue, traffic: Traffic, bucket: str
) -> None:
    large = Message("large", queue.event_type, "model", LARGE, "runner", "run", "exp")
    await broker.publish([large, *messages(queue, 3)])
    async with broker.consume(queue.name, prefetch=10) as consumer:
        delivered = await traffic.take(consumer, 4)
        [found] = [each for each in delivered if each.message.id == "large"]
        assert found.message == large
        await consumer.retry(found, 0, "again")
        [again] = await traffic.take(consumer, 1)
        assert (again.message, again.attempt) == (large, 2)
        await consumer.reject(again, "broken")
    [letter] = await broker.dead_letters(queue.name)
    assert letter.message == large
    assert len(await _keys(broker, bucket)) == 1


async def test_what_fits_is_no_claim(broker: SqsBroker, queue: WorkQueue, bucket: str) -> None:
    fits = Message("fits", queue.event_type, "model", LARGE[:-1_000])
    await broker.publish([fits])
    assert await _keys(broker, bucket) == []


async def test_without_a_bucket_the_error_says_what_to_do(
    broker: SqsBroker, queue: WorkQueue
) -> None:
    connection: Any = broker._connection
    connection.address = replace(connection.address, bucket=None)
    broker._sender._claims._address = connection.address
    with pytest.raises(BrokerError, match=r"\?bucket=my-claims"):
        await broker.publish([Message("large", queue.event_type, "model", LARGE)])
    await broker.publish([message(queue, 1)])


async def test_content_that_is_gone_leaves_a_message_that_can_be_rejected(
    broker: SqsBroker, queue: WorkQueue, traffic: Traffic, bucket: str
) -> None:
    await broker.publish([Message("large", queue.event_type, "model", LARGE), *messages(queue, 3)])
    [key] = await _keys(broker, bucket)
    await broker._connection.call("s3", "delete_object", Bucket=bucket, Key=key)
    async with broker.consume(queue.name, prefetch=10) as consumer:
        bodies = {each.message.id: each.message.body for each in await traffic.take(consumer, 4)}
    assert bodies["large"] == key.encode()


async def test_content_that_cannot_be_read_now_keeps_no_other_message_waiting(
    broker: SqsBroker, queue: WorkQueue, traffic: Traffic, bucket: str
) -> None:
    large = Message("large", queue.event_type, "model", LARGE)
    await broker.publish([large, *messages(queue, 3)])
    address = broker._connection.address
    broker._claims._address = replace(address, bucket=None)
    async with broker.consume(queue.name, prefetch=10) as consumer:
        others = await traffic.take(consumer, 3)
        assert sorted(ids(others)) == ids(messages(queue, 3))
        broker._claims._address = address
        [late] = await traffic.take(consumer, 1)
    assert (late.message, late.attempt) == (large, 1)
