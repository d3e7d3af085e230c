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

from socratic_bench.adapters.rabbitmq.faults import despite_faults, is_fault
from socratic_bench.adapters.rabbitmq.link import CLOSE_SECONDS, Link

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


async def look(link: Link, names: Iterable[str]) -> dict[str, Seen | None]:
    """What the server says of each queue. Raises BrokerUnavailable and BrokerClosed."""
    found: dict[str, Seen | None] = {}
    left = list(dict.fromkeys(names))
    while left:
        async with link.channel() as channel:
            while left:
                name = left.pop()
                found[name] = await link.in_time(seen(channel, name))
                if found[name] is None:
                    break
    return found


async def leaderless(link: Link, names: Collection[str]) -> set[str]:
    """Those of the queues that have no leader. Raises BrokerUnavailable and BrokerClosed."""
    answers = await look(link, names)
    doubtful = [name for name, answer in answers.items() if answer == Seen(0, 0)]
    probe = _Probe(link)
    try:
        return {name for name in doubtful if not await probe.answers(name)}
    finally:
        await probe.close()


async def until_unused(link: Link, name: str, patience: float) -> None:
    """Wait until nobody consumes a queue, or for so many seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(patience):
            while True:
                found = (await look(link, [name]))[name]
                if found is None or not found.consumers:
                    return
                await asyncio.sleep(LOOK_SECONDS)


async def delete(link: Link, name: str) -> None:
    """Delete a queue that may have no leader. Raises BrokerUnavailable where it cannot be."""
    connection = await link.another()
    try:
        channel = await link.in_time(connection.channel())
        await link.in_time(channel.queue_delete(name))
    finally:
        await _close(connection)


class _Probe:
    """A connection that may break at every question."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._connection: AbstractConnection | None = None

    async def answers(self, name: str) -> bool:
        """Whether a queue answers. A message it happens to have by now goes back."""
        if self._connection is None:
            self._connection = await self._link.another()
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                async with self._connection.channel() as channel:
                    queue = await channel.get_queue(name, ensure=False)
                    await queue.get(fail=False, no_ack=False)
        except ChannelNotFoundEntity:
            return True
        except Exception as error:
            if not is_fault(error):
                raise
            await self.close()
            return False
        return True

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await _close(connection)


async def _close(connection: AbstractConnection) -> None:
    with despite_faults():
        async with asyncio.timeout(CLOSE_SECONDS):
            await connection.close()
