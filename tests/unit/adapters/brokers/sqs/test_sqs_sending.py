"""Sending and settling despite throttling, failures and half-taken batches."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from socratic_bench.adapters.brokers.sqs import sender, server_queue
from socratic_bench.adapters.brokers.sqs.sender import OutgoingSend, Sender, SendTarget
from socratic_bench.adapters.brokers.sqs.server_queue import ServerQueue
from socratic_bench.adapters.brokers.sqs.wire import encode
from socratic_bench.concurrency.retry_policy import RetryPolicy
from socratic_bench.errors import BrokerClosed, BrokerError, BrokerUnavailable
from socratic_bench.events.codec import Message
from tests.unit.adapters.brokers.sqs.scripted_aws import ScriptedAws, all_taken, connected, refused

QUEUE = "http://127.0.0.1/000000000000/unit-queue"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    for module in (sender, server_queue):
        monkeypatch.setattr(module, "_RETRY", RetryPolicy(first_delay=0.001, longest_delay=0.001))


def outgoing(count: int, size: int = 10) -> list[OutgoingSend]:
    return [
        OutgoingSend(SendTarget(QUEUE), encode([Message(f"id-{n}", "t.v1", "model", b"x" * size)]))
        for n in range(count)
    ]


def throttled(code: str) -> dict[str, Any]:
    """A failed entry that SQS throttled: the sender's fault, in its words."""
    return {"Id": "0", "SenderFault": True, "Code": code, "Message": "slow down"}


async def test_ten_messages_are_one_request() -> None:
    aws = ScriptedAws(lambda _, request: all_taken(request))
    async with connected(aws) as connection:
        await Sender(connection).send(outgoing(25))
    assert sorted(len(request["Entries"]) for _, request in aws.asked) == [5, 10, 10]


async def test_a_request_holds_no_more_than_sqs_takes() -> None:
    aws = ScriptedAws(lambda _, request: all_taken(request))
    async with connected(aws) as connection:
        await Sender(connection).send(outgoing(7, size=300_000))
    assert sorted(len(request["Entries"]) for _, request in aws.asked) == [1, 3, 3]


@pytest.mark.parametrize(
    "failure",
    [refused("RequestThrottled"), refused("ThrottlingException"), refused("Down", 503), None],
    ids=["throttled", "throttling", "down", "cut"],
)
async def test_what_fails_is_sent_again(failure: Any) -> None:
    failures = [failure, failure]
    aws = ScriptedAws(lambda _, request: failures.pop() if failures else all_taken(request))
    async with connected(aws) as connection:
        await Sender(connection).send(outgoing(3))
        assert connection.requests == {"send_message_batch": 3}


async def test_only_what_was_not_taken_is_sent_again() -> None:
    def answer(_operation: str, request: dict[str, Any]) -> Any:
        status, body = all_taken(request) or (500, {})
        if len(request["Entries"]) == 10:
            failed = {"Id": "7", "SenderFault": False, "Code": "InternalError", "Message": "busy"}
            body = {"Successful": body["Successful"][:7], "Failed": [failed]}
        return status, body

    aws = ScriptedAws(answer)
    async with connected(aws) as connection:
        await Sender(connection).send(outgoing(10))
    assert [len(request["Entries"]) for _, request in aws.asked] == [10, 1]
    [again] = aws.asked[1][1]["Entries"]
    assert again["MessageAttributes"]["ce-id"]["StringValue"] == "id-7"


THROTTLED = ("RequestThrottled", "ThrottlingException", "KmsThrottled", "OverLimit", "SlowDown")


@pytest.mark.parametrize("code", THROTTLED)
async def test_a_throttled_entry_is_sent_again(code: str) -> None:
    script = [(200, {"Successful": [], "Failed": [throttled(code)]})]
    aws = ScriptedAws(lambda _, request: script.pop() if script else all_taken(request))
    async with connected(aws) as connection:
        await Sender(connection).send(outgoing(1))
    assert len(aws.asked) == 2


@pytest.mark.parametrize("code", THROTTLED)
async def test_a_throttled_deletion_or_extension_is_tried_again(code: str) -> None:
    script: list[Any] = []
    aws = ScriptedAws(lambda _, request: script.pop() if script else all_taken(request))
    async with connected(aws) as connection:
        queue = ServerQueue(connection, "q", QUEUE)
        for settle in (queue.delete, partial(queue.show_in, 30)):
            script.append((200, {"Successful": [], "Failed": [throttled(code)]}))
            assert await settle(["handle"]) == set()
    assert len(aws.asked) == 4


async def test_what_sqs_refuses_for_good_is_an_error_at_once() -> None:
    failed = {"Id": "0", "SenderFault": True, "Code": "InvalidMessageContents", "Message": "no"}
    aws = ScriptedAws(lambda _operation, _request: (200, {"Successful": [], "Failed": [failed]}))
    async with connected(aws) as connection:
        with pytest.raises(BrokerError, match="InvalidMessageContents"):
            await Sender(connection).send(outgoing(1))
    assert len(aws.asked) == 1


async def test_a_publish_that_never_succeeds_is_unavailable_in_the_end(monkeypatch) -> None:
    throttled = False
    aws = ScriptedAws(
        lambda _, request: refused("RequestThrottled") if throttled else all_taken(request)
    )
    async with connected(aws) as connection:
        await Sender(connection).send(outgoing(1))  # making the client takes its time
        monkeypatch.setattr(sender, "SEND_SECONDS", 0.5)
        throttled = True
        with pytest.raises(BrokerUnavailable, match="RequestThrottled"):
            await Sender(connection).send(outgoing(1))
    assert len(aws.asked) > 2


async def test_a_missing_queue_is_named() -> None:
    aws = ScriptedAws(lambda _operation, _request: refused("QueueDoesNotExist"))
    async with connected(aws) as connection:
        with pytest.raises(BrokerUnavailable, match="unit-queue is missing"):
            await ServerQueue(connection, "unit-queue", QUEUE).depth()


async def test_a_closed_connection_says_so() -> None:
    aws = ScriptedAws(lambda _, request: all_taken(request))
    async with connected(aws) as connection:
        await connection.close()
        with pytest.raises(BrokerClosed):
            await Sender(connection).send(outgoing(1))


async def test_deletions_are_tried_again_and_refused_ones_are_told() -> None:
    busy = {"Id": "1", "SenderFault": False, "Code": "InternalError", "Message": "busy"}
    stale = {"Id": "2", "SenderFault": True, "Code": "ReceiptHandleIsInvalid", "Message": "old"}
    script = [
        refused("RequestThrottled"),
        (200, {"Successful": [{"Id": "0"}], "Failed": [busy, stale]}),
    ]
    aws = ScriptedAws(lambda _, request: script.pop(0) if script else all_taken(request))
    async with connected(aws) as connection:
        lost = await ServerQueue(connection, "q", QUEUE).delete(["one", "two", "three"])
    assert lost == {"three"}
    handles = [[each["ReceiptHandle"] for each in asked["Entries"]] for _, asked in aws.asked]
    assert handles == [["one", "two", "three"], ["one", "two", "three"], ["two"]]
