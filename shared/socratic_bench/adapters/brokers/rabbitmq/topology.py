"""The names and arguments of everything that this project declares on a RabbitMQ server.

    socratic.events (direct exchange, routing key = event type)
    ├── judge-response-recorded                     a queue
    └── runner-run-requested.groups                 a headers exchange: one queue per group
        ├── runner-run-requested.bedrock-claude-…
        └── runner-run-requested.openai-gpt-…
    runner-run-requested.delayed                    messages that wait until they are due
    runner-run-requested.suspects                   messages that may kill consumers: handled alone
    runner-run-requested.dead                       dead letters

Each group has a queue with a prefetch of its own, so that a group with a long queue holds up no
other. AMQP cannot list them: every user of a group declares its queue, publishers announce it to
the consumers that are there, and the server deletes a queue after a month without use. All are
quorum queues: durable, and replicated over several nodes. RabbitMQ itself moves no message from one
queue to another, see `delayed`: consumers publish a copy, and settle the message when the server
confirms the copy.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final

from socratic_bench.adapters.brokers.receiving import LISTENER_BUFFER
from socratic_bench.ports.broker import WorkQueue

GROUP_HEADER: Final = "socratic-group"
"""The header that names a message's group; group queues are bound by it."""

# D-051: the server would count deploys and cut connections as attempts.
NO_LIMIT: Final = 1_000_000_000
"""Switches the server's delivery limit off. RabbitMQ 4 sets 20 by default."""

_GROUP_NAME_LENGTH = 60


def named(name: str, namespace: str) -> str:
    """Prefix `name` with a namespace, so that several brokers can share a virtual host."""
    return f"{namespace}.{name}" if namespace else name


def events_exchange(namespace: str) -> str:
    """Return the name of the exchange to which every event is published."""
    return named("socratic.events", namespace)


def dead_letter_queue(queue: str) -> str:
    """Return the name of the queue of dead letters."""
    return f"{queue}.dead"


def group_queues_exchange(queue: str) -> str:
    """Return the name of the exchange that spreads messages over the group queues."""
    return f"{queue}.groups"


def group_queue(queue: str, group: str) -> str:
    """Return the name of a group's queue: a readable part and a hash that keeps it unique."""
    readable = re.sub(r"[^A-Za-z0-9_.]+", "-", group)[:_GROUP_NAME_LENGTH].strip("-")
    digest = hashlib.blake2b(group.encode(), digest_size=4).hexdigest()
    return f"{queue}.{readable}-{digest}"


def announcements(queue: str) -> str:
    """Return the routing key with which publishers announce the groups of a queue."""
    return f"{queue}.announced"


def delayed_queue(queue: str) -> str:
    """Return the name of the queue of delayed messages."""
    return f"{queue}.delayed"


def suspects_queue(queue: str) -> str:
    """Return the name of the queue of suspects: messages that may kill their consumers."""
    return f"{queue}.suspects"


def queues_of(queue: WorkQueue) -> list[str]:
    """Return the server's queues that make up one of ours, its group queues excepted."""
    name = queue.name
    beside = [dead_letter_queue(name), delayed_queue(name), suspects_queue(name)]
    return beside if queue.separate_groups else [name, *beside]


QUEUE_ARGUMENTS: Final[dict[str, Any]] = {"x-queue-type": "quorum", "x-delivery-limit": NO_LIMIT}
"""The arguments of every queue. Consumers count attempts and give the reason of a dead letter; the
server's own limit would drop messages, and would count even a look at a queue."""

# D-042: AMQP cannot list queues, so unused ones have to go by themselves.
GROUP_QUEUE_EXPIRES: Final = 30 * 24 * 60 * 60 * 1000
"""Milliseconds without use after which the server deletes a group queue."""

GROUP_QUEUE_ARGUMENTS: Final[dict[str, Any]] = {
    **QUEUE_ARGUMENTS,
    "x-expires": GROUP_QUEUE_EXPIRES,
}

# New names would deliver each request twice while two versions run.
EARLIER_GROUP_QUEUE_ARGUMENTS: Final = QUEUE_ARGUMENTS
"""Group queues of an earlier version: this version uses them unchanged, and they never expire."""

LISTENER_ARGUMENTS: Final[dict[str, Any]] = {
    "x-max-length": LISTENER_BUFFER,
    "x-overflow": "drop-head",
}
