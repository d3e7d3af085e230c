"""Publishing with confirms: sent again, over a new connection if need be, until it is confirmed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from aio_pika import Message as AmqpMessage
from aio_pika.abc import AbstractChannel
from aio_pika.exceptions import PublishError

from socratic_bench.adapters.rabbitmq.faults import is_fault
from socratic_bench.adapters.rabbitmq.link import Link, close_channel
from socratic_bench.errors import BrokerUnavailable, UnroutableMessage

PUBLISH_SECONDS: Final = 30.0
"""Within which everything of one call has to be confirmed."""

_PAUSE: Final = 0.2
"""Seconds until what the server refused, or was not there for, is sent again."""

_SIDE_BY_SIDE: Final = 256
"""Messages that wait for their confirms at the same time."""


class Outgoing(NamedTuple):
    """A message on its way to an exchange; to a queue where the exchange is ''."""

    exchange: str
    routing_key: str
    message: AmqpMessage
    mandatory: bool = True
    """Whether it is an error that no queue takes it."""


class Publisher:
    """Publishes over one channel, opened when first used and whenever it was lost.

    On a connection of its own: a server that is short of memory or disk stops reading from those
    who publish, and consumers have to be able to settle what they hold.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._channel: AbstractChannel | None = None
        self._opening = asyncio.Lock()
        self._publishing: set[asyncio.Task[None]] = set()
        self._trouble = ""

    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        """Publish; returns once the server has confirmed everything.

        Raises UnroutableMessage for a mandatory one that no queue takes, BrokerUnavailable if not
        all were confirmed in time, and BrokerClosed. Some may have been published then, and what
        was sent again may arrive twice. What was begun is published even if the caller is
        cancelled: a driver that is stopped halfway loses count of its confirms.
        """
        publishing = asyncio.create_task(self._publish_in_time(outgoing))
        self._publishing.add(publishing)
        publishing.add_done_callback(self._done)
        await asyncio.shield(publishing)

    async def close(self) -> None:
        """Close the connection, and stop what is being published."""
        await self._link.close()
        for task in self._publishing:
            task.cancel()
        if self._publishing:
            await asyncio.wait(self._publishing)

    def _done(self, publishing: asyncio.Task[None]) -> None:
        self._publishing.discard(publishing)
        if not publishing.cancelled():
            publishing.exception()

    async def _publish_in_time(self, outgoing: Sequence[Outgoing]) -> None:
        try:
            async with asyncio.timeout(PUBLISH_SECONDS):
                for start in range(0, len(outgoing), _SIDE_BY_SIDE):
                    await self._publish_all(outgoing[start : start + _SIDE_BY_SIDE])
        except TimeoutError as error:
            await self._start_over()
            raise BrokerUnavailable(
                self._trouble
                or f"{self._link.name}: the broker has not confirmed a message for "
                f"{PUBLISH_SECONDS:g} s; look whether it is short of memory or disk"
            ) from error

    async def _publish_all(self, outgoing: Sequence[Outgoing]) -> None:
        while outgoing:
            try:
                channel = await self._open_channel()
            except BrokerUnavailable as unavailable:
                self._trouble = str(unavailable)
                await asyncio.sleep(_PAUSE)
                continue
            results = await asyncio.gather(
                *(_publish(channel, each) for each in outgoing), return_exceptions=True
            )
            failed: list[Outgoing] = []
            for each, error in zip(outgoing, results, strict=True):
                if isinstance(error, PublishError):
                    raise _unroutable(each)
                if is_fault(error):
                    failed.append(each)
                elif error is not None:
                    raise error
            if failed and not channel.is_closed:
                await asyncio.sleep(_PAUSE)
            outgoing = failed

    async def _open_channel(self) -> AbstractChannel:
        async with self._opening:
            if self._channel is None or self._channel.is_closed or self._link.closed:
                self._channel = await self._link.open_channel()
                self._trouble = ""
            return self._channel

    async def _start_over(self) -> None:
        """Publish over another channel from now on."""
        channel, self._channel = self._channel, None
        if channel is not None:
            await close_channel(channel)


async def _publish(channel: AbstractChannel, outgoing: Outgoing) -> None:
    exchange = (
        await channel.get_exchange(outgoing.exchange, ensure=False)
        if outgoing.exchange
        else channel.default_exchange
    )
    await exchange.publish(
        outgoing.message, routing_key=outgoing.routing_key, mandatory=outgoing.mandatory
    )


def _unroutable(outgoing: Outgoing) -> UnroutableMessage:
    message = outgoing.message
    return UnroutableMessage(
        f"message {message.message_id!r}: no queue takes type {message.type!r}; its queue was "
        "deleted: declare it again, by starting a service, and publish again"
    )
