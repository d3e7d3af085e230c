"""Server-sent events: bodies as they change, over connections that stay open.

A stream polls the cache of ready bodies, so a crowd of streams costs as much as one. It ends when
the client leaves, when the application stops, and after LONGEST_SECONDS: the client connects again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from socratic_api.answers.ready_bytes import ReadyBody
from socratic_bench.errors import StoreError, UnknownExperiment

MEDIA_TYPE: Final = "text/event-stream"
MOST_STREAMS: Final = 100
"""The most streams at once; others are refused, and their clients poll."""

POLL_SECONDS: Final = 0.05
HEARTBEAT_SECONDS: Final = 15.0
"""Seconds of silence after which a stream sends an event that says nothing: proxies close silent
connections, and a page that hears nothing for longer polls."""

LONGEST_SECONDS: Final = 3600.0
RETRY_MS: Final = 2_000
"""Milliseconds after which a client connects again."""

_AWAY: Final = b"event: away\ndata: {}\n\n"
_GONE: Final = b"event: gone\ndata: {}\n\n"
_HEARTBEAT: Final = b"event: heartbeat\ndata: {}\n\n"

_HEADERS: Final = {
    "Cache-Control": "no-store, no-transform",  # a proxy that compresses would hold events back
    "X-Accel-Buffering": "no",  # as nginx does by default
}

Read = Callable[[], Awaitable[ReadyBody]]

Tell = Callable[[ReadyBody], bytes]
"""Makes the event that tells of a body."""


@dataclass(slots=True)
class Streams:
    """Counts the open streams of an application, and ends them."""

    poll_seconds: float = POLL_SECONDS
    heartbeat_seconds: float = HEARTBEAT_SECONDS
    open: int = 0
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)

    def stop(self) -> None:
        """End every stream: an application that waits for their ends would wait for long."""
        self._stopping.set()

    def response(self, read: Read, known: str | None, tell: Tell | None = None) -> EventStream:
        """Return a stream of the bodies that `read` returns, without the one called `known`.

        `tell` makes another event of each body. Raises HTTPException 503 if there are too many
        streams.
        """
        if self.open >= MOST_STREAMS or self._stopping.is_set():
            raise HTTPException(
                503,
                "many follow experiments already: poll with If-None-Match, or try again later",
                {"Retry-After": "30"},
            )
        return EventStream(self, self._events(read, known, tell or _experiment))

    async def _events(self, read: Read, known: str | None, tell: Tell) -> AsyncIterator[bytes]:
        yield f"retry: {RETRY_MS}\n\n".encode()
        end = time.monotonic() + LONGEST_SECONDS
        silent_since, is_away = time.monotonic(), False
        while time.monotonic() < end and not self._stopping.is_set():
            event: bytes | None = None
            try:
                ready = await read()
            except UnknownExperiment:
                yield _GONE
                return
            except (StoreError, TimeoutError):
                event, is_away = (None if is_away else _AWAY), True
            else:
                if is_away or ready.etag != known:
                    event, is_away, known = tell(ready), False, ready.etag
            if event is None and time.monotonic() - silent_since >= self.heartbeat_seconds:
                event = _HEARTBEAT
            if event is not None:
                yield event
                silent_since = time.monotonic()
            with suppress(TimeoutError):
                async with asyncio.timeout(self.poll_seconds):
                    await self._stopping.wait()


class EventStream(StreamingResponse):
    """One stream, which counts as open until its end."""

    def __init__(self, streams: Streams, events: AsyncIterator[bytes]) -> None:
        super().__init__(events, media_type=MEDIA_TYPE, headers=_HEADERS)
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._streams.open += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._streams.open -= 1


def change_told(ready: ReadyBody) -> bytes:
    """Return an event that says that there is another body, and not what it holds."""
    return b"id: %b\nevent: change\ndata: {}\n\n" % ready.etag.encode()


def _experiment(ready: ReadyBody) -> bytes:
    # JSON of pydantic holds no line break, so one data line holds it all.
    return b"id: %b\nevent: experiment\ndata: %b\n\n" % (ready.etag.encode(), ready.plain)
