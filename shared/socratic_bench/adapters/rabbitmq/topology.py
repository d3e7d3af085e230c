"""What this project declares on a RabbitMQ server, under which names, with which arguments.

    socratic.events (direct exchange, routing key = event type)
    ├── judge-response-recorded                     a queue
    └── runner-run-requested.lanes                  a headers exchange: one queue per group
        ├── runner-run-requested.bedrock-claude-…
        └── runner-run-requested.openai-gpt-…
    runner-run-requested.groups                     a stream: the names of the groups there are
    runner-run-requested.delay-30s                  waits, and goes back to where it came from
    runner-run-requested.dead                       dead letters

A queue for each group is what keeps a group with a long queue from holding up the others: each
has a prefetch of its own. All are quorum queues: durable, replicated where there are several nodes,
with a delivery limit. Messages that expire in a delay queue, or that ended too many consumers, are
moved at least once: RabbitMQ keeps them until their new queue has confirmed them.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final

from socratic_bench.ports.broker import WorkQueue

GROUP_HEADER: Final = "socratic-group"
"""The header that says which group a message belongs to; what lanes are bound by."""

DELAYS: Final = (0.2, 1.0, 3.0, 10.0, 30.0, 60.0, 150.0, 300.0, 900.0, 3600.0)
"""Seconds that a message can be delayed by. A queue each, since RabbitMQ looks for expired messages
only at the head of a queue: among equal delays the first one in is the first one due."""

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


def lanes_exchange(queue: str) -> str:
    """What spreads the messages of a queue over its lanes."""
    return f"{queue}.lanes"


def groups_stream(queue: str) -> str:
    """Where the names of all groups are written down."""
    return f"{queue}.groups"


def lane(queue: str, group: str) -> str:
    """The queue of one group: its name, as far as it can be read, and a hash to tell it apart."""
    readable = re.sub(r"[^A-Za-z0-9_.]+", "-", group)[:_GROUP_NAME_LENGTH].strip("-")
    digest = hashlib.blake2b(group.encode(), digest_size=4).hexdigest()
    return f"{queue}.{readable}-{digest}"


def delay_queue(queue: str, delay: float) -> str:
    """Where messages of a queue wait for `delay`, which is one of DELAYS."""
    return f"{queue}.delay-{delay:g}s"


def shortest_delay_of(at_least: float) -> float:
    """The shortest of DELAYS that is not below `at_least`; the longest where all are."""
    return next((delay for delay in DELAYS if delay >= at_least), DELAYS[-1])


def work_arguments(queue: WorkQueue, delivery_limit: int) -> dict[str, Any]:
    """Of a queue, or of each of its lanes."""
    return {
        "x-queue-type": "quorum",
        # RabbitMQ counts deliveries that came back, and allows one more than that.
        "x-delivery-limit": delivery_limit - 1,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": dead_letter_queue(queue.name),
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
    }


def delay_arguments(queue: WorkQueue, delay: float) -> dict[str, Any]:
    """Of a delay queue: where its messages go once they are due."""
    back = (
        {"x-dead-letter-exchange": lanes_exchange(queue.name)}
        if queue.separate_groups
        else {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": queue.name}
    )
    return {
        "x-queue-type": "quorum",
        "x-message-ttl": round(delay * 1000),
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
        **back,
    }


DEAD_LETTER_ARGUMENTS: Final[dict[str, Any]] = {
    "x-queue-type": "quorum",
    "x-delivery-limit": NO_LIMIT,
}
"""Of a dead-letter queue. Whoever only looks takes its letters and puts them back."""

GROUPS_ARGUMENTS: Final[dict[str, Any]] = {"x-queue-type": "stream"}

LISTENER_ARGUMENTS: Final[dict[str, Any]] = {
    "x-max-length": LISTENER_BUFFER,
    "x-overflow": "drop-head",
}

WORN_OUT: Final = (
    "it was delivered as often as the queue allows, and each time its consumer ended without "
    "settling it"
)
"""Why a message is a dead letter that nobody rejected."""
