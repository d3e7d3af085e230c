"""Queues and topics of the server: find them, and create those that are missing."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from socratic_bench.adapters.brokers.sqs.address import (
    LAST_RESORT_RECEIVES,
    MOST_NAME_LENGTH,
    RETENTION_SECONDS,
)
from socratic_bench.adapters.brokers.sqs.connection import AwsConnection
from socratic_bench.adapters.brokers.sqs.server_queue import ServerQueue
from socratic_bench.errors import InvalidInput
from socratic_bench.ports.broker import WorkQueue


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
    """Return a sentence for each queue that is missing, dead letters included. Declares nothing."""
    names = [name for queue in queues for name in names_of(connection, queue)]
    missing = [name for name in names if await find(connection, name) is None]
    if names and missing == names:
        return [_all_missing(connection.address.name)]
    return [_missing(name) for name in missing]


def _all_missing(server: str) -> str:
    return (
        f"{server}: all queues are missing: deploy them, or start the services, which declare "
        "them, or correct the region or the namespace of the address"
    )


def _missing(name: str) -> str:
    lost = (
        "its dead letters are lost"
        if name.endswith("-dlq")
        else "the curator publishes its lost messages again"
    )
    return f"queue {name!r} is missing: deploy it, or start the services, which declare it; {lost}"


async def _create(connection: AwsConnection, name: str, **attributes: str) -> ServerQueue:
    answer = await connection.call(
        "sqs",
        "create_queue",
        QueueName=name,
        Attributes={
            "MessageRetentionPeriod": str(RETENTION_SECONDS),
            "SqsManagedSseEnabled": "true",
            **attributes,
        },
    )
    return ServerQueue(connection, name, answer["QueueUrl"])
