"""One listener to broadcasts, with a queue of its own that ends with it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import structlog
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage, AbstractQueue

from socratic_bench.adapters.brokers.rabbitmq import topology
from socratic_bench.adapters.brokers.rabbitmq.connection import (
    ReconnectingConnection,
    lost_event,
)
from socratic_bench.adapters.brokers.rabbitmq.declaring import declare_events
from socratic_bench.adapters.brokers.rabbitmq.wire import from_amqp
from socratic_bench.adapters.brokers.receiving import BroadcastListener
from socratic_bench.concurrency.deadlines import cancelled, wait_at_most
from socratic_bench.errors import BrokerClosed, BrokerError

log = structlog.get_logger(__name__)

BIND_SECONDS: Final = 5.0
"""Seconds between two renewals of a listener's bindings."""


class RabbitMQListener(BroadcastListener):
    """Misses messages that are published while its connection is lost."""

    def __init__(self, connection: ReconnectingConnection, event_types: Sequence[str]) -> None:
        super().__init__()
        self._connection = connection
        self._event_types = event_types
        self._running: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Listen from now on. Raises BrokerUnavailable and BrokerClosed."""
        listening = asyncio.get_running_loop().create_future()
        self._running = asyncio.create_task(self._run(listening), name="listener")
        try:
            await listening
        except BaseException:
            await self.end(closed=False)
            raise

    async def end(self, *, closed: bool) -> None:
        """Stop listening: the context ended, or the broker was closed."""
        self.stop(closed=closed)
        if self._running is not None:
            await cancelled(self._running)

    async def _run(self, listening: asyncio.Future[None]) -> None:
        """Listen, again after each loss of the channel; `ready` gets the first result or error."""
        while True:
            try:
                async with self._connection.channel() as channel:
                    lost = await lost_event(channel)
                    queue = await self._connection.in_time(self._consume(channel))
                    if not listening.done():
                        listening.set_result(None)
                    await self._stay_bound(channel, queue, lost)
            except BrokerError as error:
                if not listening.done():
                    listening.set_exception(error)
                    return
                if isinstance(error, BrokerClosed):
                    return
                log.warning("cannot listen", reason=str(error))
                await asyncio.sleep(1)

    async def _stay_bound(
        self, channel: AbstractChannel, queue: AbstractQueue, lost: asyncio.Event
    ) -> None:
        """Renew the bindings now and then: the server does not report a deleted exchange."""
        while not lost.is_set():
            if await wait_at_most(BIND_SECONDS, lost):
                return
            await self._connection.in_time(self._bind(channel, queue))

    async def _consume(self, channel: AbstractChannel) -> AbstractQueue:
        queue = await channel.declare_queue(
            exclusive=True, auto_delete=True, arguments=topology.LISTENER_ARGUMENTS
        )
        await self._bind(channel, queue)
        await queue.consume(self._on_message, no_ack=True)
        return queue

    async def _bind(self, channel: AbstractChannel, queue: AbstractQueue) -> None:
        events = topology.events_exchange(self._connection.namespace)
        await declare_events(channel, events)
        for event_type in self._event_types:
            await queue.bind(events, routing_key=event_type)

    async def _on_message(self, incoming: AbstractIncomingMessage) -> None:
        self.hear(from_amqp(incoming))
