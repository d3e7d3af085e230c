"""Keeps what a consumer holds invisible to others, for as long as it holds it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from socratic_bench.adapters.brokers.sqs.connecting.server_queue import ServerQueue
from socratic_bench.adapters.brokers.sqs.record import Incoming
from socratic_bench.consuming.unacked import UnackedMessages
from socratic_bench.errors import BrokerClosed

log = structlog.get_logger(__name__)

INVISIBLE_SECONDS: Final = 30.0
"""Seconds after which SQS delivers a message again whose consumer is dead."""

_BEATS: Final = 3
"""Heartbeats in that time: two of them may fail."""


class Heartbeat:
    """Renews the invisibility of a consumer's messages, ten to a request."""

    def __init__(
        self,
        queue: ServerQueue,
        unacked: UnackedMessages[Incoming],
        *,
        invisible: float = INVISIBLE_SECONDS,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._queue = queue
        self._unacked = unacked
        self._invisible = invisible
        self._sleep = sleep

    async def run(self) -> None:
        """Beat until cancelled, or until the broker is closed."""
        while True:
            await self._sleep(self._invisible / _BEATS)
            try:
                await self.beat()
            except BrokerClosed:
                return

    async def beat(self) -> None:
        """Renew what was held for a while; forget what SQS has taken back.

        A message that arrived since the last heartbeat needs none yet.
        """
        then = asyncio.get_running_loop().time() - self._invisible / _BEATS / 2
        held = {
            batch.incoming.handle: batch
            for batch in self._unacked.batches
            if batch.arrived <= then and batch.unsettled
        }
        if not held:
            return
        failed = await self._queue.show_in(round(self._invisible), list(held))
        for handle in failed:
            if held[handle].unsettled:
                log.warning(
                    "held too long", queue=self._queue.name, message=held[handle].incoming.id
                )
                self._unacked.lose(held[handle])
