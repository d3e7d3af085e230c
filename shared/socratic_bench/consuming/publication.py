"""Publishes the events of handlers, without a deadline, and then settles their deliveries."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import structlog

from socratic_bench.concurrency.retry_policy import RetryPolicy
from socratic_bench.consuming.outcomes import Settlement
from socratic_bench.consuming.waits import Waits
from socratic_bench.errors import BrokerClosed, BrokerError, MessageTooLarge
from socratic_bench.events.codec import Message

log = structlog.get_logger(__name__)

Publish = Callable[[Sequence[Message]], Awaitable[None]]


class Ready(NamedTuple):
    """Messages to publish, and the settlements that depend on them."""

    messages: Sequence[Message]
    settlements: Sequence[Settlement]


class Publication:
    """Publishes for one batch of deliveries, in a task beside its handler.

    An unavailable broker delays settlements, never the handler: its calls in flight continue.
    """

    def __init__(
        self,
        publish: Publish,
        settle: Callable[[Sequence[Settlement]], Awaitable[None]],
        waits: Waits,
        retry_policy: RetryPolicy,
    ) -> None:
        self._publish = publish
        self._settle = settle
        self._waits = waits
        self._retry_policy = retry_policy
        self._ready: list[Ready] = []
        self._changed = asyncio.Event()
        self._ended = False

    def put(self, ready: Ready) -> None:
        """Queue messages for publication, and their settlements for afterwards."""
        self._ready.append(ready)
        self._changed.set()

    def end(self) -> None:
        """Return from `run` once everything is published and settled."""
        self._ended = True
        self._changed.set()

    async def run(self) -> None:
        """Publish and settle until the end. Raises BrokerClosed."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            ready, self._ready = self._ready, []
            if ready:
                await self._publish_patiently([each for one in ready for each in one.messages])
                await self._settle([each for one in ready for each in one.settlements])
            if self._ended and not self._ready:
                return

    async def _publish_patiently(self, messages: Sequence[Message]) -> None:
        # D-057: waiting inside the handler would end the calls that it has under way.
        error = await self._try(messages)
        if error is None:
            return
        log.warning("messages wait to be published", messages=len(messages), reason=str(error))
        attempt = 0
        with self._waits.waiting() as waits_for:
            while error is not None:
                waits_for(error)
                attempt += 1
                await asyncio.sleep(self._retry_policy.delay(attempt))
                error = await self._try(messages)

    async def _try(self, messages: Sequence[Message]) -> BrokerError | None:
        """Publish once; returns the broker's error, if any."""
        if not messages:
            return None
        try:
            await self._publish(messages)
        except BrokerClosed:
            raise
        except MessageTooLarge as error:
            # The store has its content: the reconciler tries it again, ever less often.
            log.warning("message kept apart", reason=str(error))
        except BrokerError as error:
            return error
        return None
