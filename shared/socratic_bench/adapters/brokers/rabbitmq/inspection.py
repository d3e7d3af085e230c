"""Inspects the server's queues from outside: problems, each with its remedy."""

from __future__ import annotations

from collections.abc import Iterable

from socratic_bench.adapters.brokers.rabbitmq.connecting import health
from socratic_bench.adapters.brokers.rabbitmq.connecting.reconnecting import ReconnectingConnection
from socratic_bench.adapters.brokers.rabbitmq.declaring import topology
from socratic_bench.ports.broker import WorkQueue


async def inspect(connection: ReconnectingConnection, queues: Iterable[WorkQueue]) -> list[str]:
    """Return a sentence for each queue that is missing or has no leader, group queues excepted.

    Declares nothing. Raises BrokerUnavailable and BrokerClosed.
    """
    queues = list(queues)
    names = [name for queue in queues for name in topology.queues_of(queue)]
    dead = {topology.dead_letter_queue(queue.name) for queue in queues}
    found = await health.look(connection, names)
    missing = [name for name in names if found[name] is None]
    if missing == names:
        return [_all_missing(connection.name)]
    leaderless = await health.leaderless(
        connection, [name for name in names if name not in missing]
    )
    return [
        *(_missing(name, dead=name in dead) for name in missing),
        *(_leaderless(name, dead=name in dead) for name in names if name in leaderless),
    ]


def _all_missing(server: str) -> str:
    return (
        f"{server}: all queues are missing: start the services, which declare them, or "
        "correct the virtual host or the namespace of the address"
    )


def _missing(name: str, *, dead: bool) -> str:
    lost = "its dead letters are lost" if dead else "the curator publishes its lost messages again"
    return f"queue {name!r} is missing: start the services, which declare it; {lost}"


def _leaderless(name: str, *, dead: bool) -> str:
    lost = (
        "that loses its dead letters" if dead else "the curator publishes its lost messages again"
    )
    return (
        f"queue {name!r} has no leader: nothing gets in or out; start the server's nodes that are "
        "down; running services replace it by an empty queue after a "
        f"minute or two; {lost}"
    )
