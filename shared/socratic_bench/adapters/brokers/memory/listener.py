"""One listener to broadcasts in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from socratic_bench.concurrency.waiting_line import WaitingLine
from socratic_bench.errors import BrokerClosed
from socratic_bench.events.message import Message


class MemoryListener:
    """Keeps the newest `buffer` messages until the caller takes them."""

    def __init__(self, buffer: int) -> None:
        self._heard: deque[Message] = deque(maxlen=buffer)
        self._waiting = WaitingLine()
        self._ended = False
        self._closed = False

    def __aiter__(self) -> MemoryListener:
        return self

    async def __anext__(self) -> Message:
        while not self._heard:
            if self._closed:
                raise BrokerClosed("the broker this listener belongs to was closed")
            if self._ended:
                raise StopAsyncIteration
            await self._waiting.wait()
        return self._heard.popleft()

    def hear(self, messages: Iterable[Message]) -> None:
        """Add these messages, without waiting."""
        self._heard.extend(messages)
        self._waiting.wake_all()

    def end(self, *, closed: bool) -> None:
        """Stop listening: the context ended, or the broker was closed."""
        self._ended = True
        self._closed = self._closed or closed
        self._waiting.wake_all()
