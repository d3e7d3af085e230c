"""Sends calls to one address: its connections, its deadlines, its failures."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError
from pydantic_core import to_json

from socratic_bench.concurrency.deadlines import ThawingTimeout
from socratic_bench.domain.experiment.manifest import Limits
from socratic_bench.errors import FailureKind, FaultScope, ModelCallFailed
from socratic_runner.models.access import refused_address
from socratic_runner.models.http.connectors import (
    ON_CONNECTED,
    QuietConnector,
    RestedConnector,
    tls_remedy,
    why,
)
from socratic_runner.models.http.diagnosis import Diagnosis, proxy_remedy
from socratic_runner.models.http.failures import Failures
from socratic_runner.models.http.proxies import proxy_for, shown
from socratic_runner.models.http.reading import EventDecoder, ReplyReading

LARGEST_ERROR: Final = 64_000
"""The most bytes of an error's body."""

_ERROR_SECONDS: Final = 5.0
"""Seconds that the body of an error may take after its status."""

_TAIL_SECONDS: Final = 0.5
"""Seconds that the end of a body may take after the end of its reply; then the connection is
reused."""

# D-081: a reply is final after its stop reason.
_COUNTS_SECONDS: Final = 5.0
"""Seconds that the token counts may take after the stop reason."""

_MARGIN_SECONDS: Final = 0.5
"""Seconds before a call's deadline when the client takes a finished reply without waiting for
more."""

_STARTS_OF_EVENTS: Final = (b"data:", b"event:", b"id:", b"retry:", b":")


class Connection:
    """Posts JSON to one address, with any number of concurrent calls."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        limits: Limits,
        failures: Failures,
    ) -> None:
        self._url = url
        self._headers = {
            **headers,
            # Send small bodies at once.
            "Accept-Encoding": "identity",
            "User-Agent": "socratic-bench",
        }
        self._limits = limits
        self._failures = failures
        self.first_byte_seconds = limits.first_byte_timeout_seconds
        """Seconds until the first byte of a stream; more while a server loads its model."""

        self._connector: QuietConnector | None = None
        self._proxy = proxy_for(url)
        if self._proxy is not None:
            failures.called = failures.called._replace(proxy=shown(self._proxy))
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    async def post(self, body: Mapping[str, Any], reading: ReplyReading) -> None:
        """Post `body`, and feed the response to `reading`.

        A cancellation closes the connection of this call. Raises ModelCallFailed.
        """
        await self.send("POST", self._url, to_json(body), reading)

    async def send(
        self,
        method: str,
        url: str,
        data: bytes | None,
        reading: ReplyReading,
        content_type: str = "application/json",
    ) -> None:
        """Send a request to an address of the same origin, as `post` does."""
        if self._closed:
            message = "cannot be asked: the client is closed"
            raise self._failures.failure(FailureKind.UNKNOWN, message, passing=False)
        began = False
        ends_at = _now() + self._limits.timeout_seconds - _MARGIN_SECONDS
        waiting = ThawingTimeout()
        ON_CONNECTED.set(partial(self._await_first_byte, waiting) if reading.streamed else None)
        try:
            async with (
                waiting,
                self._open_session().request(
                    method,
                    url,
                    data=data,
                    headers={"Content-Type": content_type},
                    proxy=self._proxy,
                    # D-075: a redirect would send the key to an address that the server names.
                    allow_redirects=False,
                ) as response,
            ):
                began = True
                reading.headers = response.headers
                await _read(response, reading, waiting, ends_at)
        except (aiohttp.ClientError, OSError) as error:
            if not (reading.settled or reading.complete):
                raise self._lost(error, reading, began=began) from None
        except (asyncio.CancelledError, RuntimeError) as error:
            if not self._ended_by_closing():
                raise
            raise self._lost(error, reading, began=began) from None

    async def close(self) -> None:
        """Close all connections; calls in flight fail. A second close does nothing."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._connector = (
                QuietConnector() if self._url.startswith("https://") else RestedConnector()
            )
            self._session = aiohttp.ClientSession(
                connector=self._connector,
                timeout=aiohttp.ClientTimeout(
                    total=None, connect=self._limits.connect_timeout_seconds
                ),
                headers=self._headers,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    def _await_first_byte(self, waiting: ThawingTimeout) -> None:
        waiting.reschedule(_now() + self.first_byte_seconds)

    def _ended_by_closing(self) -> bool:
        """Return whether closing the client ended this call, and not its caller.

        Closing cancels the call or raises RuntimeError in it, depending on its progress.
        """
        task = asyncio.current_task()
        return self._closed and task is not None and not task.cancelling()

    def _lost(self, error: BaseException, reading: ReplyReading, *, began: bool) -> ModelCallFailed:
        """Classify a broken connection.

        Only the error's message is kept: the error itself holds the headers of the request.
        """
        failure = self._failures.failure
        if self._closed:
            return reading.cut("the client was closed before the reply was finished")
        if refused := refused_address(error):
            return failure(FailureKind.BAD_REQUEST, f"cannot be asked: {refused}")
        if isinstance(error, TimeoutError) and not isinstance(error, aiohttp.ClientError):
            message = (
                f"sent no first byte within {self.first_byte_seconds:g} s; if it needs longer, "
                "such as to load the model, raise limits.first_byte_timeout_seconds and "
                "limits.timeout_seconds"
            )
            return failure(FailureKind.TIMEOUT, message)
        if isinstance(error, aiohttp.ClientResponseError) or _is_undecodable(error):
            return self._failed_handshake(error)
        return self._disconnected(error, reading, began=began)

    def _disconnected(
        self, error: BaseException, reading: ReplyReading, *, began: bool
    ) -> ModelCallFailed:
        message = why(error)
        if remedy := tls_remedy(error):
            diagnosis = Diagnosis(FaultScope.ROUTE, remedy)
            message = f"cannot be trusted: {message}"
            return self._failures.failure(FailureKind.TLS, message, diagnosis=diagnosis)
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            message = f"no connection within {self._limits.connect_timeout_seconds:g} s"
        if began:
            return reading.cut(message)
        if self._connector is not None and not isinstance(error, aiohttp.ClientConnectorError):
            self._connector.distrust()
        return self._unreachable(message)

    def _unreachable(self, message: str, *, lasts: bool = False) -> ModelCallFailed:
        called, way, remedy = self._failures.called, "", ""
        if called.proxy is not None:
            way, remedy = f" through the proxy {called.proxy}", proxy_remedy(called)
        return self._failures.failure(
            FailureKind.UNREACHABLE,
            f"cannot be reached{way}: {message}",
            diagnosis=Diagnosis(FaultScope.ROUTE, remedy, lasts),
        )

    def _failed_handshake(self, error: BaseException) -> ModelCallFailed:
        if isinstance(error, aiohttp.ClientHttpProxyError):
            lasts = 400 <= error.status < 500
            said = f"the proxy answered HTTP {error.status} {error.message}"
            return self._unreachable(said, lasts=lasts)
        undecodable = _is_undecodable(error)
        wrong = "a reply that cannot be read" if undecodable else "bytes that are not HTTP"
        said = getattr(error.__cause__ or error, "message", str(error))
        return self._failures.failure(FailureKind.MALFORMED_REPLY, f"sent {wrong}: {said}")


def _is_undecodable(error: BaseException) -> bool:
    """Return whether a body's encoding was not requested, or is wrong."""
    cause = error.__cause__
    return isinstance(cause, HttpProcessingError) and "content-encoding" in cause.message


async def _read(
    response: aiohttp.ClientResponse, reading: ReplyReading, waiting: ThawingTimeout, ends_at: float
) -> None:
    """Reads a response. Its call ends at `ends_at`, by the loop's clock."""
    if not 200 <= response.status < 300:
        waiting.reschedule(None)
        body = await _beginning(response)
        raise reading.failures.answered(response.status, response.headers, body)
    if reading.streamed and response.content_type != "application/json":
        await _read_events(response, reading, waiting, ends_at)
    else:
        await _read_whole(response, reading, waiting)


async def _read_events(
    response: aiohttp.ClientResponse, reading: ReplyReading, waiting: ThawingTimeout, ends_at: float
) -> None:
    decoder, size, complete, settled = EventDecoder(), 0, False, False
    before: list[bytes] | None = []
    """The bytes before the first event."""
    async for piece in response.content.iter_any():
        if complete:
            continue
        size += len(piece)
        _check_size(size, reading)
        events = decoder.feed(piece)
        before = None if before is None or events else [*before, piece]
        reading.take_events(events)
        complete = reading.complete
        if complete:
            waiting.reschedule(_now() + _TAIL_SECONDS)
        elif not reading.settled:
            settled = False
            waiting.reschedule(None)
        elif not settled:
            settled = True
            waiting.reschedule(min(_now() + _COUNTS_SECONDS, ends_at))
    if before:
        _take_no_stream(b"".join(before), reading)


def _take_no_stream(body: bytes, reading: ReplyReading) -> None:
    """Take a body that is not a stream: a whole reply, an error, or anything else."""
    start = body.lstrip()
    if start.startswith((b"{", b"[")):
        reading.take_whole(body)
    elif start and not start.startswith(_STARTS_OF_EVENTS):
        raise reading.unreadable("it is not an event stream", start)


async def _read_whole(
    response: aiohttp.ClientResponse, reading: ReplyReading, waiting: ThawingTimeout
) -> None:
    pieces, size = [], 0
    try:
        async for piece in response.content.iter_any():
            waiting.reschedule(None)
            size += len(piece)
            _check_size(size, reading)
            pieces.append(piece)
    except (aiohttp.ClientError, OSError):
        # The reply may be complete, and only its length wrong.
        with suppress(ModelCallFailed):
            reading.take_whole(b"".join(pieces))
        raise
    reading.take_whole(b"".join(pieces))


async def _beginning(response: aiohttp.ClientResponse) -> bytes:
    """Return the body of an error, as far as it arrives; its status says enough."""
    body = b""
    with suppress(aiohttp.ClientError, OSError):
        async with asyncio.timeout(_ERROR_SECONDS):
            async for piece in response.content.iter_any():
                body += piece
                if len(body) > LARGEST_ERROR:
                    break
    return body[:LARGEST_ERROR]


def _now() -> float:
    return asyncio.get_running_loop().time()


def _check_size(size: int, reading: ReplyReading) -> None:
    if size > reading.largest:
        message = f"sent a reply of more than {reading.largest:,} bytes"
        raise reading.failures.failure(FailureKind.MALFORMED_REPLY, message)
