"""Answers that are encoded once for each revision of the store and then sent as they are."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response

_GZIP_FROM_BYTES = 1024
_GZIP_LEVEL = 5


@dataclass(frozen=True, slots=True)
class ReadyBody:
    """A body with its validator, plain and compressed, and the headers of each."""

    plain: bytes
    compressed: bytes | None
    """None where compression is not worth it."""

    etag: str
    plain_headers: tuple[tuple[bytes, bytes], ...]
    compressed_headers: tuple[tuple[bytes, bytes], ...]


def make_ready(body: bytes, media_type: str) -> ReadyBody:
    """Compress and fingerprint a body; slow for a big one."""
    etag = f'W/"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    compressed = None
    if len(body) >= _GZIP_FROM_BYTES:
        compressed = gzip.compress(body, _GZIP_LEVEL, mtime=0)
    shared = (
        (b"content-type", media_type.encode()),
        (b"cache-control", b"no-cache"),
        (b"vary", b"accept-encoding"),
        (b"etag", etag.encode()),
    )
    return ReadyBody(
        body,
        compressed,
        etag,
        (*shared, (b"content-length", b"%d" % len(body))),
        (
            *shared,
            (b"content-encoding", b"gzip"),
            (b"content-length", b"%d" % len(compressed or b"")),
        ),
    )


def ready_response(request: Request, ready: ReadyBody) -> Response:
    """The body as this request wants it: not at all (304), compressed, or plain."""
    response = Response()
    known = request.headers.get("if-none-match")
    if known is not None and _names(known, ready.etag):
        response.status_code = 304
        response.raw_headers = [
            header for header in ready.plain_headers if header[0] != b"content-length"
        ]
    elif ready.compressed is not None and _takes_gzip(request.headers.get("accept-encoding", "")):
        response.body = ready.compressed
        response.raw_headers = list(ready.compressed_headers)
    else:
        response.body = ready.plain
        response.raw_headers = list(ready.plain_headers)
    return response


def _names(if_none_match: str, etag: str) -> bool:
    """Weak comparison, which is what If-None-Match asks for (RFC 9110, section 13.1.2)."""
    opaque = etag.removeprefix("W/")
    return any(
        candidate.strip() == "*" or candidate.strip().removeprefix("W/") == opaque
        for candidate in if_none_match.split(",")
    )


def _takes_gzip(accept_encoding: str) -> bool:
    for offer in accept_encoding.lower().split(","):
        coding, _, weight = offer.partition(";")
        if coding.strip() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


@dataclass(slots=True)
class _Entry:
    revision: str | None = None
    ready: ReadyBody | None = None
    fresh_until: float = 0.0
    refresh: asyncio.Task[ReadyBody] | None = None


@dataclass(slots=True)
class ReadyBytes:
    """A bounded cache of bodies, each as good as the store's revision it was made from.

    An entry is served without a question for `freshness` seconds. After that the store is asked
    for its revision, by one task however many requests wait for it, and the body is made anew only
    if the revision has changed. Making a body takes at most a fifth of the time: an entry that was
    slow to make stays fresh for longer.
    """

    revision: Callable[[], Awaitable[str]]
    freshness: float
    """Seconds."""

    timeout: float
    """Seconds that a refresh may take; TimeoutError after that."""

    capacity: int = 64
    media_type: str = "application/json"
    _entries: OrderedDict[str, _Entry] = field(default_factory=OrderedDict)
    _running: set[asyncio.Task[ReadyBody]] = field(default_factory=set)

    async def get(self, key: str, make: Callable[[], Awaitable[bytes]]) -> ReadyBody:
        """The body called `key`, made by `make` if there is none of the present revision."""
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry()
            while len(self._entries) > self.capacity:
                self._entries.popitem(last=False)
        else:
            self._entries.move_to_end(key)
        if entry.ready is not None and time.monotonic() < entry.fresh_until:
            return entry.ready
        if entry.refresh is None:
            entry.refresh = asyncio.create_task(self._refresh(key, entry, make))
            self._running.add(entry.refresh)
            entry.refresh.add_done_callback(self._running.discard)
        return await asyncio.shield(entry.refresh)

    async def _refresh(
        self, key: str, entry: _Entry, make: Callable[[], Awaitable[bytes]]
    ) -> ReadyBody:
        began = time.monotonic()
        try:
            async with asyncio.timeout(self.timeout):
                revision = await self.revision()
                if entry.ready is None or entry.revision != revision:
                    body = await make()
                    entry.ready = await asyncio.to_thread(make_ready, body, self.media_type)
                    entry.revision = revision
        except BaseException:
            if entry.ready is None and self._entries.get(key) is entry:
                del self._entries[key]
            raise
        finally:
            entry.refresh = None
        ended = time.monotonic()
        entry.fresh_until = ended + max(self.freshness, 4 * (ended - began))
        return entry.ready

    async def close(self) -> None:
        """End the refreshes in hand."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
