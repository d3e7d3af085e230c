"""Which queues of the server can be used: it declares one without a leader as if nothing were.

A quorum queue may lose its leader for good, on all nodes. RabbitMQ answers a declaration of it as
usual, with no messages and no consumers; to consume it or to get from it ends the whole connection.
It can be deleted, and declared anew. So a queue that shows neither messages nor consumers is asked
for a message over a connection of its own before it is consumed: it has none to take.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Final, NamedTuple

from aio_pika.abc import AbstractChannel, AbstractConnection
from aio_pika.exceptions import ChannelNotFoundEntity

from socratic_bench.adapters.rabbitmq.connection_errors import (
    ignoring_connection_errors,
    is_connection_error,
)
from socratic_bench.adapters.rabbitmq.reconnecting import CLOSE_SECONDS, ReconnectingConnection

LOOK_SECONDS: Final = 0.2
"""Seconds between two looks at whether a queue is consumed."""

PROBE_SECONDS: Final = 5.0
"""How long a queue may take to answer until it is taken for one without a leader."""

REPLACE_SECONDS: Final = 60.0
"""How long a queue may be without a leader until its consumer replaces it by an empty one."""

REPLACED: Final = "queue replaced, its messages are lost: it had no leader"


def no_leader(name: str) -> str:
    """What is wrong with a queue without a leader."""
    return f"queue {name!r} has no leader: nothing gets in or out"


class Seen(NamedTuple):
    """What the server says of a queue."""

    messages: int
    """How many are ready."""

    consumers: int


async def seen(channel: AbstractChannel, name: str) -> Seen | None:
    """What the server says of a queue; None, and the channel is closed, if there is none."""
    try:
        queue = await channel.get_queue(name)
    except ChannelNotFoundEntity:
        return None
    result = queue.declaration_result
    return Seen(result.message_count or 0, result.consumer_count or 0)


async def look(connection: ReconnectingConnection, names: Iterable[str]) -> dict[str, Seen | None]:
    """What the server says of each queue. Raises BrokerUnavailable and BrokerClosed."""
    found: dict[str, Seen | None] = {}
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
    """Those of the queues that have no leader. Raises BrokerUnavailable and BrokerClosed."""
    answers = await look(connection, names)
    doubtful = [name for name, answer in answers.items() if answer == Seen(0, 0)]
    probe = _Probe(connection)
    try:
        return {name for name in doubtful if not await probe.answers(name)}
    finally:
        await probe.close()


async def until_unused(connection: ReconnectingConnection, name: str, patience: float) -> None:
    """Wait until nobody consumes a queue, or for so many seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(patience):
            while True:
                found = (await look(connection, [name]))[name]
                if found is None or not found.consumers:
                    return
                await asyncio.sleep(LOOK_SECONDS)


async def delete(connection: ReconnectingConnection, name: str) -> None:
    """Delete a queue that may have no leader. Raises BrokerUnavailable where it cannot be."""
    own = await connection.another()
    try:
        channel = await connection.in_time(own.channel())
        await connection.in_time(channel.queue_delete(name))
    finally:
        await _close(own)


class _Probe:
    """A connection that may break at every question."""

    def __init__(self, connection: ReconnectingConnection) -> None:
        self._connection = connection
        self._own: AbstractConnection | None = None

    async def answers(self, name: str) -> bool:
        """Whether a queue answers. A message it happens to have by now goes back."""
        if self._own is None:
            self._own = await self._connection.another()
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                async with self._own.channel() as channel:
                    queue = await channel.get_queue(name, ensure=False)
                    await queue.get(fail=False, no_ack=False)
        except ChannelNotFoundEntity:
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
