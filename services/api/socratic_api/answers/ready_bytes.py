"""Answers encoded once for each revision of the store, sent unchanged, or as 304 Not Modified."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Container
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

JSON = "application/json"

RawHeaders = tuple[tuple[bytes, bytes], ...]

GZIP_FROM_BYTES = 1024
GZIP_LEVEL = 5

_MADE_AT_ONCE = 1
"""The most bodies made at once; others wait. One alone can take 100 MB to make."""

_MADE_WITHIN = 60.0
"""Seconds that the making of a body may take."""

_FRESH_FOR = 2
"""How many times longer than its making a body stays fresh."""

_STALE_AFTER = 0.25
"""Seconds that a request waits for a new body where an older one exists."""

_STALE_FOR = 10.0
"""Seconds for which an older body replaces a new one; after that the API reports that the store
does not answer."""


@dataclass(frozen=True, slots=True)
class ReadyBody:
    """A body with its validator, plain and compressed, and the headers of each."""

    plain: bytes
    compressed: bytes | None
    """None where compression is not worth it."""

    etag: str
    plain_headers: RawHeaders
    """The length of the body comes last."""

    compressed_headers: RawHeaders

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return len(self.plain) + len(self.compressed or b"")


def make_ready(body: bytes, media_type: str) -> ReadyBody:
    """Compress and fingerprint a body; slow for a big one."""
    etag = f'W/"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    compressed = None
    if len(body) >= GZIP_FROM_BYTES:
        compressed = gzip.compress(body, GZIP_LEVEL, mtime=0)
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
    """Return the response to this request: 304 without a body, compressed, or plain."""
    response = Response()
    response.status_code, headers, response.body = wanted(request.scope, ready)
    response.raw_headers = list(headers)
    return response


def wanted(scope: Scope, ready: ReadyBody) -> tuple[int, RawHeaders, bytes]:
    """Return the status, headers and body for a request."""
    known = encodings = None
    for name, value in scope["headers"]:
        if name == b"if-none-match":
            known = value
        elif name == b"accept-encoding":
            encodings = value
    if known is not None and _names(known.decode("latin-1"), ready.etag):
        return 304, ready.plain_headers[:-1], b""  # all but the length
    offered = "" if encodings is None else encodings.decode("latin-1")
    if ready.compressed is not None and _takes_gzip(offered):
        return 200, ready.compressed_headers, ready.compressed
    return 200, ready.plain_headers, ready.plain


def _names(if_none_match: str, etag: str) -> bool:
    """Compare weakly, as If-None-Match requires (RFC 9110, section 13.1.2)."""
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

    @property
    def size(self) -> int:
        return 0 if self.ready is None else self.ready.size


@dataclass(slots=True)
class ReadyBytes:
    """A bounded cache of bodies, each valid for the store's revision of its making.

    An entry is served without a question to the store for `freshness` seconds. After that one task
    asks the store for its revision, however many requests wait. The body is made again only after a
    change. Making a body takes at most a third of the time: an entry that was slow to make stays
    fresh for longer. Under load, a request gets the body of an earlier revision instead of waiting.
    """

    revision: Callable[[], Awaitable[str]]
    freshness: float
    """Seconds."""

    timeout: float
    """Seconds that a request waits; TimeoutError after that. A large body is made nonetheless, for
    the request that comes again."""

    lasting: Container[str] = ()
    """Frequent keys, which the cache always keeps: few."""

    outlives_answers: bool = True
    """False where a refresh would stand still after the answer: each request waits for its own."""

    capacity: int = 64
    capacity_bytes: int = 16 * 1024 * 1024
    _entries: OrderedDict[str, _Entry] = field(default_factory=OrderedDict)
    _running: set[asyncio.Task[ReadyBody]] = field(default_factory=set)
    _making: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_MADE_AT_ONCE))

    def fresh(self, key: str) -> ReadyBody | None:
        """Return the body called `key` if it is still fresh, else None."""
        entry = self._entries.get(key)
        if entry is None or time.monotonic() >= entry.fresh_until:
            return None
        return entry.ready

    async def get(
        self, key: str, make: Callable[[], Awaitable[bytes]], media_type: str = JSON
    ) -> ReadyBody:
        """Return the body called `key`; `make` makes it if the present revision has none."""
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry()
            self._make_room()
        else:
            self._entries.move_to_end(key)
        if entry.ready is not None and time.monotonic() < entry.fresh_until:
            return entry.ready
        if entry.refresh is None:
            entry.refresh = asyncio.create_task(self._refresh(key, entry, make, media_type))
            self._running.add(entry.refresh)
            entry.refresh.add_done_callback(self._refreshed)
        refresh = entry.refresh
        if not self.outlives_answers:
            return await asyncio.shield(refresh)
        older = entry.ready
        if older is not None and time.monotonic() < entry.fresh_until + _STALE_FOR:
            await asyncio.wait({refresh}, timeout=_STALE_AFTER)
            if not refresh.done():
                return older
        await asyncio.wait({refresh}, timeout=self.timeout)
        if not refresh.done():
            raise TimeoutError("the answer takes long to make")
        return refresh.result()

    async def _refresh(
        self, key: str, entry: _Entry, make: Callable[[], Awaitable[bytes]], media_type: str
    ) -> ReadyBody:
        began = time.monotonic()
        try:
            async with asyncio.timeout(self.timeout) as deadline:
                revision = await self.revision()
                if self.outlives_answers:
                    deadline.reschedule(asyncio.get_running_loop().time() + _MADE_WITHIN)
                if entry.ready is None or entry.revision != revision:
                    async with self._making:
                        began = time.monotonic()
                        body = await make()
                        entry.ready = await asyncio.to_thread(make_ready, body, media_type)
                    entry.revision = revision
        except BaseException:
            if entry.ready is None and self._entries.get(key) is entry:
                del self._entries[key]
            raise
        finally:
            entry.refresh = None
        ended = time.monotonic()
        entry.fresh_until = ended + max(self.freshness, _FRESH_FOR * (ended - began))
        self._make_room()
        return entry.ready

    def _refreshed(self, refresh: asyncio.Task[ReadyBody]) -> None:
        self._running.discard(refresh)
        if not refresh.cancelled():
            refresh.exception()  # retrieved, even without a waiting request

    def _make_room(self) -> None:
        """Drop the least recently used bodies until the rest fits."""
        passing = [key for key in self._entries if key not in self.lasting]
        held = sum(self._entries[key].size for key in passing)
        while passing and (len(passing) > self.capacity or held > self.capacity_bytes):
            held -= self._entries.pop(passing.pop(0)).size

    async def close(self) -> None:
        """End the running refreshes."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
