"""What this project declares on a RabbitMQ server, under which names, with which arguments.

    socratic.events (direct exchange, routing key = event type)
    ├── judge-response-recorded                     a queue
    └── runner-run-requested.group_queues                  a headers exchange: one queue per group
        ├── runner-run-requested.bedrock-claude-…
        └── runner-run-requested.openai-gpt-…
    runner-run-requested.delayed                    wait here, and are put back when they are due
    runner-run-requested.suspects                   may be what ends consumers: handled alone
    runner-run-requested.dead                       dead letters

Each group has a queue with a prefetch of its own, so that a group with a long queue holds up no
other. No list of them exists: whoever uses a group declares its queue, and the server deletes a
queue that was not used for a month. All are quorum queues: durable, and replicated where there are
several nodes. RabbitMQ itself moves no message from one queue to another, see `delayed`: consumers
publish a copy, and settle the message when the copy is confirmed.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final

from socratic_bench.ports.broker import WorkQueue

GROUP_HEADER: Final = "socratic-group"
"""The header that says which group a message belongs to; what group queues are bound by."""

NO_LIMIT: Final = 1_000_000_000
"""A delivery limit that is none. RabbitMQ 4 has one of 20 unless a queue says otherwise."""

LISTENER_BUFFER: Final = 1_000
"""Broadcasts the server keeps for a listener that lags, the newest ones."""

_GROUP_NAME_LENGTH = 60


def named(name: str, namespace: str) -> str:
    """`name` within a namespace: several that share a virtual host keep out of each other's way."""
    return f"{namespace}.{name}" if namespace else name


def events_exchange(namespace: str) -> str:
    """What every event is published to."""
    return named("socratic.events", namespace)


def dead_letter_queue(queue: str) -> str:
    """Where the dead letters of a queue are."""
    return f"{queue}.dead"


def group_queues_exchange(queue: str) -> str:
    """What spreads the messages of a queue over its group queues."""
    return f"{queue}.lanes"


def group_queue(queue: str, group: str) -> str:
    """The queue of one group: its name, as far as it can be read, and a hash to tell it apart."""
    readable = re.sub(r"[^A-Za-z0-9_.]+", "-", group)[:_GROUP_NAME_LENGTH].strip("-")
    digest = hashlib.blake2b(group.encode(), digest_size=4).hexdigest()
    return f"{queue}.{readable}-{digest}"


def delayed_queue(queue: str) -> str:
    """Where messages of a queue wait until they are due."""
    return f"{queue}.delayed"


def suspects_queue(queue: str) -> str:
    """Where messages wait that may be what ends their consumers, each on its own."""
    return f"{queue}.suspects"


def queues_of(queue: WorkQueue) -> list[str]:
    """The queues of the server that one of ours is made of, its group queues excepted."""
    name = queue.name
    beside = [dead_letter_queue(name), delayed_queue(name), suspects_queue(name)]
    return beside if queue.separate_groups else [name, *beside]


QUEUE_ARGUMENTS: Final[dict[str, Any]] = {"x-queue-type": "quorum", "x-delivery-limit": NO_LIMIT}
"""Of every queue. Consumers count attempts, and say why a message is dead; RabbitMQ
would throw away what came too often, and whoever only looks takes and puts back."""

GROUP_QUEUE_EXPIRES: Final = 30 * 24 * 60 * 60 * 1000
"""Milliseconds without use after which the server deletes a group queue."""

GROUP_QUEUE_ARGUMENTS: Final[dict[str, Any]] = {
    **QUEUE_ARGUMENTS,
    "x-expires": GROUP_QUEUE_EXPIRES,
}

EARLIER_GROUP_QUEUE_ARGUMENTS: Final = QUEUE_ARGUMENTS
"""Group queues of an earlier version: they are used as they are, and never expire."""

LISTENER_ARGUMENTS: Final[dict[str, Any]] = {
    "x-max-length": LISTENER_BUFFER,
    "x-overflow": "drop-head",
}
