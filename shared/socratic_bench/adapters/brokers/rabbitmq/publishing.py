"""Publishes with confirms, and routes the messages that a consumer returns."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import chain
from math import inf
from typing import Final, NamedTuple

from aio_pika import Message as AmqpMessage
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage
from aio_pika.exceptions import (
    ChannelNotFoundEntity,
    ChannelPreconditionFailed,
    DeliveryError,
    PublishError,
)

from socratic_bench.adapters.brokers.batches import batches
from socratic_bench.adapters.brokers.rabbitmq import topology
from socratic_bench.adapters.brokers.rabbitmq.connection import (
    ReconnectingConnection,
    close_channel,
    is_connection_error,
    refusal_of,
    refused,
)
from socratic_bench.adapters.brokers.rabbitmq.declaring import GroupQueues
from socratic_bench.adapters.brokers.rabbitmq.wire import BATCH_BYTES, same, singles, to_amqp
from socratic_bench.errors import (
    BrokerRefused,
    BrokerUnavailable,
    MessageTooLarge,
    UnroutableMessage,
)
from socratic_bench.events.codec import Message
from socratic_bench.ports.broker import WorkQueue

PUBLISH_SECONDS: Final = 30.0
"""Seconds within which the server has to confirm all messages of one call."""

CONFIRM_SECONDS: Final = 10.0
"""Seconds after which unconfirmed messages are resent over another channel. A channel may wait for
ever for the confirm of a queue that was replaced."""

REJECTED_SECONDS: Final = 10.0
"""Seconds after which messages that the server rejects, and does not merely leave unconfirmed, are
given up."""

REFUSED_SECONDS: Final = 1.0
"""Seconds until a caller hears of a refusal: it may try again at once, without end."""

LIMIT_SECONDS: Final = 60.0
"""Seconds after which a publisher tries the server's largest message anew: it may have grown."""

_TOO_LARGE: Final = re.compile(r"message size \d+ is larger than configured max size (\d+)")

_RESEND_SECONDS: Final = 0.2
"""Delay in seconds before resending messages that were nacked or lost with the connection."""

_MOST_UNCONFIRMED: Final = 256
"""Messages that may await their confirms at the same time."""


class Outgoing(NamedTuple):
    """A message for an exchange; for a queue if the exchange is ''."""

    exchange: str
    routing_key: str
    message: AmqpMessage
    mandatory: bool = True
    """Whether a message that reaches no queue is an error."""


class Publisher:
    """Publishes over one channel, opened on first use and after each loss.

    The publisher has a connection of its own: a server that is short of memory or disk stops
    reading from connections that publish, and consumers must still settle their messages.
    """

    def __init__(
        self, connection: ReconnectingConnection, restore: Callable[[], Awaitable[None]]
    ) -> None:
        """`restore` declares this process's queues and exchanges again if some are missing."""
        self._connection = connection
        self._restore = restore
        self._channel: AbstractChannel | None = None
        self._opening = asyncio.Lock()
        self._publishing: set[asyncio.Task[None]] = set()
        self._trouble = ""
        self._most_bytes = 0
        """The size of the largest message that the server takes, valid for a while."""
        self._most_bytes_until = 0.0

    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        """Publish; returns once the server has confirmed everything.

        A message without a queue or exchange is published once more after all are declared again.
        Raises UnroutableMessage for a mandatory message that still reaches no queue,
        BrokerUnavailable if confirms are missing after the deadline, MessageTooLarge once all
        others are confirmed, and BrokerClosed. Some
        messages may be published then, and resent ones may arrive twice. A cancelled caller does
        not stop a publish that has begun: the driver would lose count of its confirms.
        """
        publishing = asyncio.create_task(self._publish_in_time(outgoing))
        self._publishing.add(publishing)
        publishing.add_done_callback(self._done)
        await asyncio.shield(publishing)

    async def start_over(self) -> None:
        """Publish over a new channel from now on."""
        channel, self._channel = self._channel, None
        if channel is not None:
            await close_channel(channel)

    async def close(self) -> None:
        """Close the connection, and stop publishes in progress."""
        await self._connection.close()
        for task in self._publishing:
            task.cancel()
        if self._publishing:
            await asyncio.wait(self._publishing)

    def _done(self, publishing: asyncio.Task[None]) -> None:
        self._publishing.discard(publishing)
        if not publishing.cancelled():
            publishing.exception()

    async def _publish_in_time(self, outgoing: Sequence[Outgoing]) -> None:
        too_large: list[Outgoing] = []
        try:
            async with asyncio.timeout(PUBLISH_SECONDS):
                for start in range(0, len(outgoing), _MOST_UNCONFIRMED):
                    some = outgoing[start : start + _MOST_UNCONFIRMED]
                    too_large += await self._publish_all(some)
        except BrokerRefused:
            await asyncio.sleep(REFUSED_SECONDS)
            raise
        except TimeoutError as error:
            await self.start_over()
            raise BrokerUnavailable(
                self._trouble
                or f"{self._connection.name}: the broker has not confirmed a message for "
                f"{PUBLISH_SECONDS:g} s; look whether it is short of memory or disk"
            ) from error
        if too_large:
            await asyncio.sleep(REFUSED_SECONDS)
            raise self._too_large(too_large)

    async def _publish_all(self, outgoing: Sequence[Outgoing]) -> list[Outgoing]:
        """Publish, and return the messages that are too large for the server."""
        restored = False
        too_large: list[Outgoing] = []
        rejected_until: float | None = None
        now = asyncio.get_running_loop().time
        while outgoing:
            outgoing, beyond = self._small_enough(outgoing)
            too_large += beyond
            try:
                channel = await self._open_channel()
            except BrokerRefused:
                raise
            except BrokerUnavailable as unavailable:
                self._trouble = str(unavailable)
                await asyncio.sleep(_RESEND_SECONDS)
                continue
            failed, missing, rejected = await self._publish_over(
                channel, outgoing, may_miss=not restored
            )
            if not rejected:
                rejected_until = None
            elif rejected_until is None:
                rejected_until = now() + REJECTED_SECONDS
            elif now() >= rejected_until:
                raise self._full(failed[0])
            if missing and not restored:
                await self._restore()
                # A channel numbers its messages by queue name: it would lose messages that it
                # sends to a new queue of the same name.
                await self.start_over()
                restored = True
            elif failed and not channel.is_closed:
                await asyncio.sleep(_RESEND_SECONDS)
            outgoing = failed
        return too_large

    def _small_enough(self, outgoing: Sequence[Outgoing]) -> tuple[list[Outgoing], list[Outgoing]]:
        """Return what the server takes, with too large batches taken apart, and the rest."""
        known = asyncio.get_running_loop().time() < self._most_bytes_until
        most = self._most_bytes if known else inf
        small: list[Outgoing] = []
        beyond: list[Outgoing] = []
        for each in outgoing:
            parts = [each]
            if len(each.message.body) > most:
                parts = [each._replace(message=one) for one in singles(each.message)] or parts
            for part in parts:
                fits = len(part.message.body) <= most
                (small if fits else beyond).append(part)
        return small, beyond

    def _too_large(self, outgoing: Sequence[Outgoing]) -> MessageTooLarge:
        message = max((each.message for each in outgoing), key=lambda each: len(each.body))
        more = f" and {len(outgoing) - 1} more" if len(outgoing) > 1 else ""
        return MessageTooLarge(
            f"message {message.message_id!r} of {len(message.body):,} bytes{more}: the broker "
            f"takes {self._most_bytes:,} bytes; raise max_message_size in its rabbitmq.conf"
        )

    def _full(self, outgoing: Outgoing) -> BrokerUnavailable:
        return BrokerUnavailable(
            f"{self._connection.name}: the broker rejects messages of type "
            f"{outgoing.message.type!r}: their queue is full by a policy (max-length or "
            "max-length-bytes with overflow reject-publish); raise its limit, or start the "
            "services that empty the queue"
        )

    async def _publish_over(
        self, channel: AbstractChannel, outgoing: Sequence[Outgoing], *, may_miss: bool
    ) -> tuple[list[Outgoing], bool, bool]:
        """Return the messages without a confirm, whether a missing queue or exchange is the cause,
        and whether the server rejected all of them.
        """
        publishing = [asyncio.ensure_future(_publish(channel, each)) for each in outgoing]
        try:
            async with asyncio.timeout(CONFIRM_SECONDS):
                await asyncio.gather(*publishing, return_exceptions=True)
        except TimeoutError:
            await self.start_over()
        failed: list[Outgoing] = []
        missing = False
        rejected = 0
        for each, task in zip(outgoing, publishing, strict=True):
            error = None if task.cancelled() else task.exception()
            if error is None and not task.cancelled():
                continue
            if isinstance(error, PublishError) and not may_miss:
                raise _unroutable(each)
            if error is not None and not is_connection_error(error):
                raise error
            if words := refusal_of(error):
                raise refused(self._connection.name, words) from error
            if isinstance(error, ChannelPreconditionFailed) and (
                limit := _TOO_LARGE.search(str(error))
            ):
                self._most_bytes = int(limit[1])
                self._most_bytes_until = asyncio.get_running_loop().time() + LIMIT_SECONDS
            if isinstance(error, DeliveryError) and not isinstance(error, PublishError):
                rejected += 1
            missing = missing or isinstance(error, PublishError | ChannelNotFoundEntity)
            failed.append(each)
        return failed, missing, 0 < rejected == len(failed)

    async def _open_channel(self) -> AbstractChannel:
        async with self._opening:
            if self._channel is None or self._channel.is_closed or self._connection.closed:
                self._channel = await self._connection.open_channel()
                self._trouble = ""
            return self._channel


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


class Routing:
    """Publishes messages to one queue directly, past the exchange of all events."""

    def __init__(
        self, queue: WorkQueue, publisher: Publisher, group_queues: GroupQueues | None
    ) -> None:
        self._queue = queue
        self._publisher = publisher
        self._group_queues = group_queues

    async def republish(
        self, messages: Sequence[Message], attempts: int, delay: float = 0.0
    ) -> None:
        """Deliver messages of one group again, after `delay` seconds or a little more."""
        await self._publisher.publish(await self._copies(messages, attempts, delay))

    async def republish_batches(self, batches: Iterable[tuple[Sequence[Message], int]]) -> None:
        """Publish batches, each with its attempts, to the queue again; no delivery is counted."""
        copies = [await self._copies(messages, attempts, 0.0) for messages, attempts in batches]
        await self._publisher.publish(list(chain.from_iterable(copies)))

    async def to_suspects(
        self, messages: Sequence[Message], attempts: int, deaths: int = 0
    ) -> None:
        """Publish each message to the suspects; `deaths` of its consumers are counted already."""
        name = topology.suspects_queue(self._queue.name)
        await self._publisher.publish(
            [
                Outgoing("", name, to_amqp([message], attempts=attempts, deaths=deaths))
                for message in messages
            ]
        )

    async def _copies(
        self, messages: Sequence[Message], attempts: int, delay: float
    ) -> list[Outgoing]:
        queue, due = self._queue, None
        if self._group_queues is not None:
            # Another program may have put a message without a group, and so without a route, here.
            await self._group_queues.publish_to({message.group for message in messages})
        if delay > 0:
            exchange, key, due = "", topology.delayed_queue(queue.name), time.time() + delay
        elif queue.separate_groups:
            exchange, key = topology.group_queues_exchange(queue.name), ""
        else:
            exchange, key = "", queue.name
        return [
            Outgoing(exchange, key, to_amqp(batch, attempts=attempts, due=due))
            for batch in batches(messages, queue.batch, most_bytes=BATCH_BYTES)
        ]

    async def check_permission(self) -> None:
        """Publish nothing to nobody. Raises BrokerRefused where the user may not publish."""
        await self._publisher.publish([Outgoing("", "", AmqpMessage(b""), mandatory=False)])

    async def copy_dead_letters(self, letters: Iterable[AbstractIncomingMessage]) -> None:
        """Publish the same letters, of any form, to the end of the dead letters."""
        name = topology.dead_letter_queue(self._queue.name)
        await self._publisher.publish([Outgoing("", name, same(letter)) for letter in letters])

    async def dead_letter(self, messages: Sequence[Message], attempts: int, reason: str) -> None:
        """Publish messages to the dead letters."""
        await self._publisher.publish(
            [
                Outgoing(
                    "",
                    topology.dead_letter_queue(self._queue.name),
                    to_amqp([message], attempts=attempts, reason=reason),
                )
                for message in messages
            ]
        )
