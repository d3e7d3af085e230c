"""Finds queues that have lost their leader, which the server declares like any other.

A quorum queue may lose its leader for good, on all nodes. RabbitMQ still answers a declaration of
it, with no messages and no consumers; consuming it or getting from it ends the whole connection. It
can be deleted and declared again. So before a queue without messages and consumers is consumed, a
`get` over a separate connection tests it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Final, NamedTuple

from aio_pika.abc import AbstractChannel, AbstractConnection
from aio_pika.exceptions import ChannelNotFoundEntity
from aiormq.exceptions import ChannelAccessRefused

from socratic_bench.adapters.brokers.rabbitmq import topology
from socratic_bench.adapters.brokers.rabbitmq.connection import (
    CLOSE_SECONDS,
    ReconnectingConnection,
    ignoring_connection_errors,
    is_connection_error,
)
from socratic_bench.ports.broker import WorkQueue

LOOK_SECONDS: Final = 0.2
"""Seconds between two checks whether a queue still has consumers."""

PROBE_SECONDS: Final = 5.0
"""Seconds without an answer after which a queue counts as leaderless."""

# D-044: the server refuses to delete a queue whose other nodes are merely away.
REPLACE_SECONDS: Final = 60.0
"""Seconds without a leader after which a consumer replaces the queue by an empty one."""

REPLACED: Final = "queue replaced, its messages are lost: it had no leader"


def no_leader(name: str) -> str:
    """The problem of a queue without a leader, in a sentence."""
    return f"queue {name!r} has no leader: nothing gets in or out"


class QueueReport(NamedTuple):
    """The server's report on a queue."""

    messages: int
    """How many messages are ready."""

    consumers: int


async def seen(channel: AbstractChannel, name: str) -> QueueReport | None:
    """Report on a queue; None if it is missing, in which case the server closes the channel."""
    try:
        queue = await channel.get_queue(name)
    except ChannelNotFoundEntity:
        return None
    result = queue.declaration_result
    return QueueReport(result.message_count or 0, result.consumer_count or 0)


async def look(
    connection: ReconnectingConnection, names: Iterable[str]
) -> dict[str, QueueReport | None]:
    """Report on each queue. Raises BrokerUnavailable and BrokerClosed."""
    found: dict[str, QueueReport | None] = {}
    left = list(dict.fromkeys(names))
    while left:
        async with connection.channel() as channel:
            while left:
                name = left.pop()
                found[name] = await connection.in_time(seen(channel, name))
                if found[name] is None:
                    break
    return found


async def leaderless(connection: ReconnectingConnection, names: Collection[str]) -> set[str]:
    """Return the queues that have no leader. Raises BrokerUnavailable and BrokerClosed."""
    answers = await look(connection, names)
    doubtful = [name for name, answer in answers.items() if answer == QueueReport(0, 0)]
    probe = _Probe(connection)
    try:
        return {name for name in doubtful if not await probe.answers(name)}
    finally:
        await probe.close()


async def until_unused(connection: ReconnectingConnection, name: str, patience: float) -> None:
    """Wait until a queue has no consumers, at most for so many seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(patience):
            while True:
                found = (await look(connection, [name]))[name]
                if found is None or not found.consumers:
                    return
                await asyncio.sleep(LOOK_SECONDS)


async def delete(connection: ReconnectingConnection, name: str) -> None:
    """Delete a queue that may have no leader. Raises BrokerUnavailable if the server refuses."""
    own = await connection.another()
    try:
        channel = await connection.in_time(own.channel())
        await connection.in_time(channel.queue_delete(name))
    finally:
        await _close(own)


class _Probe:
    """Open a connection that the tested queue may break."""

    def __init__(self, connection: ReconnectingConnection) -> None:
        self._connection = connection
        self._own: AbstractConnection | None = None

    async def answers(self, name: str) -> bool:
        """Tell whether a queue answers a `get`. A message that it returns goes back."""
        if self._own is None:
            self._own = await self._connection.another()
        # A server that refuses this channel says nothing about the queue.
        channel = await self._connection.in_time(self._own.channel())
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                async with channel:
                    queue = await channel.get_queue(name, ensure=False)
                    await queue.get(fail=False, no_ack=False)
        except (ChannelNotFoundEntity, ChannelAccessRefused):
            return True
        except Exception as error:
            if not is_connection_error(error):
                raise
            await self.close()
            return False
        return True

    async def close(self) -> None:
        own, self._own = self._own, None
        if own is not None:
            await _close(own)


async def _close(connection: AbstractConnection) -> None:
    with ignoring_connection_errors():
        async with asyncio.timeout(CLOSE_SECONDS):
            await connection.close()


async def inspect(connection: ReconnectingConnection, queues: Iterable[WorkQueue]) -> list[str]:
    """Return a sentence for each queue that is missing or has no leader, group queues excepted.

    Declares nothing. Raises BrokerUnavailable and BrokerClosed.
    """
    queues = list(queues)
    names = [name for queue in queues for name in topology.queues_of(queue)]
    dead = {topology.dead_letter_queue(queue.name) for queue in queues}
    found = await look(connection, names)
    missing = [name for name in names if found[name] is None]
    if missing == names:
        return [_all_missing(connection.name)]
    lost = await leaderless(connection, [name for name in names if name not in missing])
    return [
        *(_missing(name, dead=name in dead) for name in missing),
        *(_leaderless(name, dead=name in dead) for name in names if name in lost),
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
