"""Queues and topics of the server: find them, and create those that are missing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import structlog

from socratic_bench.adapters.brokers.sqs.address import (
    LAST_RESORT_RECEIVES,
    LEAST_RETENTION_SECONDS,
    MOST_NAME_LENGTH,
    RETENTION_SECONDS,
)
from socratic_bench.adapters.brokers.sqs.connection import AwsConnection
from socratic_bench.adapters.brokers.sqs.server_queue import ServerQueue
from socratic_bench.errors import InvalidInput
from socratic_bench.ports.broker import SUSPECT_AFTER, WorkQueue

log = structlog.get_logger(__name__)

FREED_SECONDS: Final = 60.0
"""Seconds for which SQS forbids the name of a deleted queue."""

_TRY_AGAIN_SECONDS: Final = 5.0
_FORBIDDEN: Final = (
    "AWS.SimpleQueueService.QueueDeletedRecently",
    "QueueDeletedRecently",
)
_THERE: Final = ("QueueAlreadyExists", "QueueNameExists")
"""The codes of a queue that somebody has made meanwhile, with other attributes."""


class Declared(NamedTuple):
    """A work queue on the server."""

    work: WorkQueue
    queue: ServerQueue
    dead: ServerQueue


def names_of(connection: AwsConnection, queue: WorkQueue) -> tuple[str, str]:
    """Return the names of a queue and of its dead letters on the server."""
    name = connection.address.named(queue.name)
    dead = f"{name}-dlq"
    if len(dead) > MOST_NAME_LENGTH:
        raise InvalidInput(
            f"queue {dead!r} has a name of {len(dead)} characters, and SQS takes "
            f"{MOST_NAME_LENGTH}; shorten the namespace of the broker's address"
        )
    return name, dead


async def find_or_create(connection: AwsConnection, work: WorkQueue) -> Declared:
    """Find a queue and its dead letters, or create them. Raises BrokerUnavailable.

    Queues that a deployment made stay as they are.
    """
    name, dead_name = names_of(connection, work)
    dead = await find(connection, dead_name) or await _create(connection, dead_name)
    queue = await find(connection, name)
    if queue is None:
        policy = {
            "deadLetterTargetArn": await arn_of(connection, dead),
            "maxReceiveCount": LAST_RESORT_RECEIVES,
        }
        queue = await _create(connection, name, RedrivePolicy=json.dumps(policy))
    return Declared(work, queue, dead)


async def look_for(connection: AwsConnection, work: WorkQueue) -> Declared | None:
    """Find a queue with its dead letters; None if one of them is missing."""
    queue, dead = [await find(connection, name) for name in names_of(connection, work)]
    return None if queue is None or dead is None else Declared(work, queue, dead)


async def find(connection: AwsConnection, name: str) -> ServerQueue | None:
    """Find a queue by its name; None if there is none."""
    answer = await connection.look("sqs", "get_queue_url", QueueName=name)
    return None if answer is None else ServerQueue(connection, name, answer["QueueUrl"])


async def arn_of(connection: AwsConnection, queue: ServerQueue) -> str:
    """Return a queue's ARN."""
    answer = await connection.call(
        "sqs", "get_queue_attributes", QueueUrl=queue.url, AttributeNames=["QueueArn"]
    )
    return str(answer["Attributes"]["QueueArn"])


async def topic_of(connection: AwsConnection, event_type: str) -> str:
    """Find or create the topic of a broadcast type; returns its ARN."""
    name = connection.address.named(event_type.replace(".", "-"))
    answer = await connection.call("sns", "create_topic", Name=name)
    return str(answer["TopicArn"])


async def inspect(connection: AwsConnection, queues: Iterable[WorkQueue]) -> list[str]:
    """Return a sentence for each queue that is missing or may lose messages, dead letters included.

    Declares nothing.
    """
    names = {
        name: pair[-1]
        for queue in queues
        for pair in [names_of(connection, queue)]
        for name in pair
    }
    found = {name: await find(connection, name) for name in names}
    if names and not any(found.values()):
        return [_all_missing(connection.address.name)]
    problems: list[str] = []
    for name, queue in found.items():
        if queue is None:
            fifo = await find(connection, f"{name}.fifo")
            problems.append(_missing(name, is_fifo=fifo is not None))
        else:
            problems += _losses(name, names[name], await queue.attributes())
    return problems


def _all_missing(server: str) -> str:
    return (
        f"{server}: all queues are missing: deploy them, or start the services, which declare "
        "them, or correct the region or the namespace of the address"
    )


def _losses(name: str, dead: str, attributes: Mapping[str, str]) -> list[str]:
    """Return a sentence for each attribute of a queue by which messages may get lost."""
    problems: list[str] = []
    seconds = int(attributes.get("MessageRetentionPeriod", RETENTION_SECONDS))
    if seconds < LEAST_RETENTION_SECONDS:
        problems.append(
            f"queue {name!r} drops messages after {seconds:,} s: set its MessageRetentionPeriod to "
            f"{RETENTION_SECONDS}"
        )
    policy = _redrive_policy(attributes)
    most, target = policy.get("maxReceiveCount", ""), policy.get("deadLetterTargetArn", "")
    if name == dead and target:
        problems.append(
            f"queue {name!r} has a redrive policy, by which SQS takes a dead letter away after "
            f"{most} looks: remove it"
        )
    elif target and not target.endswith(f":{dead}"):
        problems.append(
            f"queue {name!r} has a redrive policy to {target.rpartition(':')[2]!r}, where nobody "
            f"looks: name {dead!r} in it"
        )
    elif most.isdecimal() and int(most) <= 2 * SUSPECT_AFTER:
        problems.append(
            f"queue {name!r} has a redrive policy, by which SQS makes a message a dead letter "
            f"after {most} deliveries: set its maxReceiveCount to {LAST_RESORT_RECEIVES}"
        )
    return problems


def _redrive_policy(attributes: Mapping[str, str]) -> dict[str, str]:
    try:
        policy = json.loads(attributes.get("RedrivePolicy") or "{}")
    except ValueError:
        return {}
    return (
        {str(key): str(value) for key, value in policy.items()} if isinstance(policy, dict) else {}
    )


def _missing(name: str, *, is_fifo: bool) -> str:
    if is_fifo:
        return (
            f"queue {name!r} is missing, and the FIFO queue '{name}.fifo' cannot stand for it: "
            "start the services, which declare a standard queue"
        )
    lost = (
        "its dead letters are lost"
        if name.endswith("-dlq")
        else "the curator publishes its lost messages again"
    )
    return f"queue {name!r} is missing: deploy it, or start the services, which declare it; {lost}"


async def _create(connection: AwsConnection, name: str, **attributes: str) -> ServerQueue:
    """Create a queue; waits while SQS forbids its name, since one of that name was deleted."""
    while True:
        answer = await connection.look(
            "sqs",
            "create_queue",
            none_for=(*_FORBIDDEN, *_THERE),
            QueueName=name,
            Attributes={
                "MessageRetentionPeriod": str(RETENTION_SECONDS),
                "SqsManagedSseEnabled": "true",
                **attributes,
            },
        )
        if answer is not None:
            return ServerQueue(connection, name, answer["QueueUrl"])
        if (queue := await find(connection, name)) is not None:
            return queue
        log.warning(
            "waiting for the name of a deleted queue", queue=name, at_most_seconds=FREED_SECONDS
        )
        await asyncio.sleep(_TRY_AGAIN_SECONDS)
