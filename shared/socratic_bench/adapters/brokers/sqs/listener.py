"""One listener to broadcasts, with a queue of its own that ends with it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final

import structlog

from socratic_bench.adapters.brokers.sqs.connecting.connection import AwsConnection
from socratic_bench.adapters.brokers.sqs.connecting.server_queue import (
    MOST_ENTRIES,
    ServerQueue,
    handles_of,
)
from socratic_bench.adapters.brokers.sqs.listener_queue import ListenerQueue
from socratic_bench.adapters.brokers.sqs.publishing.claims import Claims
from socratic_bench.concurrency.cancellation import cancelled
from socratic_bench.concurrency.waiting_line import WaitingLine
from socratic_bench.errors import BrokerClosed, BrokerError
from socratic_bench.events.message import Message

log = structlog.get_logger(__name__)

BUFFER: Final = 1_000
"""Messages that a listener keeps until its caller takes them."""

_INVISIBLE_SECONDS: Final = 30.0
_TRY_AGAIN_SECONDS: Final = 1.0


class SqsListener:
    """Keeps the newest messages until the caller asks for them."""

    def __init__(self, connection: AwsConnection, claims: Claims, topics: Sequence[str]) -> None:
        """`topics` are the ARNs of what to listen to."""
        self._claims = claims
        self._queue = ListenerQueue(connection, topics)
        self._heard: deque[Message] = deque(maxlen=BUFFER)
        self._waiting = WaitingLine()
        self._ended = False
        self._closed = False
        self._running: asyncio.Task[None] | None = None

    def __aiter__(self) -> SqsListener:
        return self

    async def __anext__(self) -> Message:
        while not self._heard:
            if self._closed:
                raise BrokerClosed("the broker this listener belongs to was closed")
            if self._ended:
                raise StopAsyncIteration
            await self._waiting.wait()
        return self._heard.popleft()

    async def open(self) -> None:
        """Listen from now on. Raises BrokerUnavailable and BrokerClosed."""
        try:
            queue = await self._queue.open()
        except BaseException:
            await self.end(closed=False)
            raise
        self._running = asyncio.create_task(self._run(queue), name="listener")

    async def end(self, *, closed: bool) -> None:
        """Stop listening: the context ended, or the broker was closed."""
        self._ended = True
        self._closed = self._closed or closed
        self._waiting.wake_all()
        if self._running is not None:
            await cancelled(self._running)
        try:
            await self._queue.delete()
        except BrokerError as error:
            log.debug("a listener's queue stays", reason=str(error))

    async def _run(self, queue: ServerQueue) -> None:
        while True:
            try:
                await self._hear(queue)
                await self._queue.renew()
            except BrokerClosed:
                return
            except BrokerError as error:
                log.warning("cannot listen", reason=str(error))
                await asyncio.sleep(_TRY_AGAIN_SECONDS)

    async def _hear(self, queue: ServerQueue) -> None:
        brought = await queue.receive(MOST_ENTRIES, invisible=_INVISIBLE_SECONDS)
        for incoming in brought:
            self._heard.extend(await self._claims.messages_of(incoming))
        self._waiting.wake_all()
        if brought:
            await queue.delete(handles_of(brought))
