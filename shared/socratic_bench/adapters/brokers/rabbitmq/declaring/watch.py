"""Watches the server for missing queues and exchanges, which it does not report itself."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Final

import structlog
from aio_pika.abc import AbstractChannel
from aio_pika.exceptions import ChannelNotFoundEntity

from socratic_bench.adapters.brokers.rabbitmq.connecting import health
from socratic_bench.adapters.brokers.rabbitmq.connecting.reconnecting import ReconnectingConnection
from socratic_bench.adapters.brokers.rabbitmq.consuming.consumer import RabbitMQConsumer
from socratic_bench.adapters.brokers.rabbitmq.declaring import topology
from socratic_bench.adapters.brokers.rabbitmq.declaring.declared import Declared
from socratic_bench.concurrency.cancellation import cancelled
from socratic_bench.errors import BrokerClosed, BrokerError

log = structlog.get_logger(__name__)

LOOK_SECONDS: Final = 5.0
"""Seconds between two looks."""

PROBE_SECONDS: Final = 60.0
"""Seconds between two checks of the leaders of dead-letter queues, which have no consumers."""


class Watch:
    """Finds missing queues and exchanges, and declares them again."""

    def __init__(
        self,
        connection: ReconnectingConnection,
        declared: Declared,
        consumers: Collection[RabbitMQConsumer],
    ) -> None:
        self._connection = connection
        self._declared = declared
        self._consumers = consumers
        self._missing: list[str] = []
        self._leaderless: dict[str, float] = {}
        """The dead-letter queues without a leader, and the time of the first sight."""
        self._probe_at = 0.0
        self._looking: asyncio.Task[None] | None = None
        self._ended = False

    def begin(self) -> None:
        """Start watching. A second call does nothing."""
        if self._looking is None:
            self._looking = asyncio.create_task(self._look_repeatedly(), name="watch")

    async def end(self) -> None:
        """Stop watching."""
        self._ended = True
        if self._looking is not None:
            await cancelled(self._looking)

    def problems(self) -> dict[str, str]:
        """Problems by the name of the queue or exchange."""
        found = {name: f"{name!r} is missing on the server" for name in self._missing}
        found |= {name: health.no_leader(name) for name in self._leaderless}
        for consumer in self._consumers:
            found |= consumer.problems()
        return found

    async def look(self) -> None:
        """Look once. Raises BrokerUnavailable and BrokerClosed."""
        found = await health.look(self._connection, self._declared.names())
        missing = [name for name, seen in found.items() if seen is None]
        missing += [name for name in self._declared.exchanges() if not await self._is_there(name)]
        self._missing = missing
        for consumer in list(self._consumers):
            consumer.compare(found)
        await self._probe_dead_letters()
        if missing:
            log.warning("declaring missing queues again", names=missing)
            await self._connection.restore()
            self._missing = []

    async def _probe_dead_letters(self) -> None:
        now = asyncio.get_running_loop().time()
        if now < self._probe_at:
            return
        self._probe_at = now + PROBE_SECONDS
        names = [topology.dead_letter_queue(name) for name in self._declared.queues]
        leaderless = await health.leaderless(self._connection, names)
        self._leaderless = {name: self._leaderless.get(name, now) for name in leaderless}
        lost = [
            at for at, since in self._leaderless.items() if now - since >= health.REPLACE_SECONDS
        ]
        for name in lost:
            # D-044: without dead letters, rejected messages would circulate for ever.
            await self._replace(name)

    async def _replace(self, name: str) -> None:
        """Replace the queue by an empty one; the server refuses while other nodes may hold it."""
        try:
            await health.delete(self._connection, name)
        except BrokerClosed:
            raise
        except BrokerError as error:
            log.warning("queue without a leader not replaced", queue=name, reason=str(error))
            return
        log.error(health.REPLACED, queue=name)
        del self._leaderless[name]
        await self._connection.restore()

    async def _look_repeatedly(self) -> None:
        # A cancellation may get lost in the driver.
        while not self._ended:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self.look()
            except BrokerClosed:
                return
            except Exception as error:
                # This task alone watches the server, so it continues after any error.
                bug = None if isinstance(error, BrokerError) else error
                log.warning("cannot look at the server", reason=str(error), exc_info=bug)

    async def _is_there(self, exchange: str) -> bool:
        async with self._connection.channel() as channel:
            return await self._connection.in_time(_exists(channel, exchange))


async def _exists(channel: AbstractChannel, exchange: str) -> bool:
    try:
        await channel.get_exchange(exchange)
    except ChannelNotFoundEntity:
        return False
    return True
