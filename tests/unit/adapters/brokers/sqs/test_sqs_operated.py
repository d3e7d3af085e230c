"""What operators change on the server: rights, policies, names, messages moved by hand."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from socratic_bench.adapters.brokers.sqs import topology
from socratic_bench.adapters.brokers.sqs.broker import SqsBroker
from socratic_bench.adapters.brokers.sqs.wire import WireState, encode, typed
from socratic_bench.errors import BrokerError, BrokerRefused
from socratic_bench.events.codec import Message
from socratic_bench.ports.broker import WorkQueue
from tests.unit.adapters.brokers.sqs.scripted_aws import (
    Answer,
    ScriptedAws,
    all_taken,
    connected,
    refused,
)
from tests.waiting import until

WORK = WorkQueue("queue", "t.v1")


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    for name in ("_TRY_AGAIN_SECONDS",):
        monkeypatch.setattr(topology, name, 0.0)


class Account(ScriptedAws):
    """An account whose queues exist; a test changes what it answers."""

    def __init__(self) -> None:
        super().__init__(self._answer_as_told)
        self.told: dict[str, Callable[[dict[str, Any]], Answer]] = {}
        self.attributes: dict[str, dict[str, str]] = {}

    def operations(self) -> list[str]:
        return [operation for operation, _ in self.asked]

    def _answer_as_told(self, operation: str, request: dict[str, Any]) -> Answer:
        if operation in self.told:
            return self.told[operation](request)
        if "Entries" in request:
            return all_taken(request)
        name = request.get("QueueName", request.get("QueueUrl", "").rpartition("/")[2])
        return 200, {
            "QueueUrl": f"http://127.0.0.1/0/{name}",
            "Attributes": {"QueueArn": f"arn:aws:sqs:::{name}", **self.attributes.get(name, {})},
        }


@asynccontextmanager
async def opened(aws: ScriptedAws) -> AsyncIterator[SqsBroker]:
    async with connected(aws) as connection:
        address = connection.address
        broker = SqsBroker(f"sqs://{address.region}/unit?endpoint={address.endpoint}")
        try:
            yield broker
        finally:
            await broker.close()


def denied(_request: dict[str, Any]) -> Answer:
    return refused("AccessDenied", 403)


def missing(_request: dict[str, Any]) -> Answer:
    return refused("QueueDoesNotExist")


@pytest.mark.parametrize(
    ("operation", "right"),
    [
        ("DeleteMessageBatch", "sqs:DeleteMessage"),
        ("ChangeMessageVisibilityBatch", "sqs:ChangeMessageVisibility"),
    ],
)
async def test_a_consumer_without_a_right_takes_nothing_until_it_has_it(
    operation: str, right: str
) -> None:
    aws = Account()
    aws.told[operation] = denied
    async with opened(aws) as broker:
        await broker.declare([WORK])
        async with broker.consume("queue", prefetch=1):
            [problem] = await until(_now(broker.problems), bool, "a problem")
            assert right in problem
            assert "ReceiveMessage" not in aws.operations()
            del aws.told[operation]
            await until(_now(broker.problems), lambda found: not found, "no problem")


async def test_a_refused_publish_names_the_right_at_once() -> None:
    aws = Account()
    aws.told["SendMessageBatch"] = denied
    async with opened(aws) as broker:
        await broker.declare([WORK])
        with pytest.raises(BrokerRefused, match="sqs:SendMessage for unit-queue"):
            await broker.publish([Message("id", "t.v1", "model", b"{}")])


async def test_a_message_beyond_the_size_of_its_queue_names_both_sizes() -> None:
    aws = Account()
    said = "One or more parameters are invalid. Reason: Message must be shorter than 2048 bytes."
    failed = {"Id": "0", "SenderFault": True, "Code": "InvalidParameterValue", "Message": said}
    aws.told["SendMessageBatch"] = lambda _: (200, {"Failed": [failed]})
    async with opened(aws) as broker:
        await broker.declare([WORK])
        with pytest.raises(BrokerError, match=r"2,048 bytes, and one has 3,\d+: .*MaximumMessageS"):
            await broker.publish([Message("id", "t.v1", "model", b"x" * 3_000)])


async def test_the_name_of_a_queue_deleted_a_moment_ago_is_waited_for() -> None:
    aws = Account()
    answers = [refused("QueueDeletedRecently"), refused("QueueDeletedRecently")]
    aws.told["GetQueueUrl"] = missing
    aws.told["CreateQueue"] = lambda request: (
        answers.pop()
        if answers
        else (200, {"QueueUrl": f"http://127.0.0.1/0/{request['QueueName']}"})
    )
    async with opened(aws) as broker:
        await broker.declare([WORK])
    assert aws.operations().count("CreateQueue") == 4


async def test_a_queue_that_may_not_be_created_names_the_right() -> None:
    aws = Account()
    aws.told["GetQueueUrl"] = missing
    aws.told["CreateQueue"] = denied
    async with opened(aws) as broker:
        with pytest.raises(BrokerRefused, match="sqs:CreateQueue for unit-queue-dlq"):
            await broker.declare([WORK])


def _policy(most: int, target: str) -> dict[str, str]:
    policy = {"maxReceiveCount": most, "deadLetterTargetArn": f"arn:aws:sqs:eu:1:{target}"}
    return {"RedrivePolicy": json.dumps(policy)}


@pytest.mark.parametrize(
    ("queue", "attributes", "told"),
    [
        ("unit-queue", {"MessageRetentionPeriod": "60"}, "drops messages after 60 s"),
        ("unit-queue", _policy(3, "unit-queue-dlq"), "after 3 deliveries"),
        ("unit-queue", _policy(50, "other"), "'other', where nobody looks"),
        ("unit-queue-dlq", _policy(4, "trash"), "takes a dead letter away after 4 looks"),
        ("unit-queue", {"VisibilityTimeout": "1", "KmsMasterKeyId": "mine"}, ""),
    ],
    ids=["retention", "few-receives", "another-target", "letters", "harmless"],
)
async def test_inspection_names_the_attributes_by_which_messages_get_lost(
    queue: str, attributes: dict[str, str], told: str
) -> None:
    aws = Account()
    aws.attributes[queue] = attributes
    async with opened(aws) as broker:
        problems = await broker.inspect([WORK])
    assert len(problems) == bool(told)
    assert told in "".join(problems)


async def test_a_fifo_queue_does_not_stand_for_a_missing_one() -> None:
    aws = Account()
    aws.told["GetQueueUrl"] = lambda request: (
        missing(request)
        if request["QueueName"] == "unit-queue"
        else (200, {"QueueUrl": f"http://127.0.0.1/0/{request['QueueName']}"})
    )
    async with opened(aws) as broker:
        [problem] = await broker.inspect([WORK])
    assert "unit-queue.fifo" in problem


async def test_a_dead_letter_that_aws_moved_back_begins_anew() -> None:
    aws = Account()
    encoded = encode([Message("id", "t.v1", "model", b"{}")], WireState(attempts=20, reason="bad"))
    letters = [
        {
            "MessageId": "m",
            "ReceiptHandle": "h",
            "Body": encoded.body,
            "MessageAttributes": typed(encoded.attributes),
        }
    ]
    aws.told["ReceiveMessage"] = lambda _: (200, {"Messages": [letters.pop()] if letters else []})
    async with opened(aws) as broker:
        await broker.declare([WORK])
        async with broker.consume("queue", prefetch=1) as consumer:
            [delivery] = await consumer.receive(1)
            await consumer.ack([delivery])
    assert delivery.attempt == 1


def _now(ask: Callable[[], Any]) -> Any:
    async def asked() -> Any:
        return ask()

    return asked
