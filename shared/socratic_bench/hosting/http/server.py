"""A server for an ASGI application inside a process that also does other work.

uvicorn limits neither a request's head, nor the time of a slow client, nor half-open connections.
So a look at all connections once a second ends late ones, and at the limit of connections the
oldest one that waits for its client gives way to a new one.
"""

from __future__ import annotations

import asyncio
import errno
import math
import os
import socket
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from socratic_bench.errors import InvalidInput, InvalidSettings

HEAD_BYTES: Final = 16 * 1024
"""The most bytes of a request's head."""

MOST_CONNECTIONS: Final = 512
"""The most connections. Each takes some 20 KB, and as much again while its request arrives."""

_BACKLOG: Final = 1024
"""Connections that the kernel holds until the server accepts them."""

_ACCEPTED_AT_ONCE: Final = 64
"""Connections that asyncio accepts before the server can end others for them."""

_RECEIVE_BYTES: Final = 64 * 1024
"""Bytes that the kernel holds of a connection before the server reads them; it doubles this."""


_PIPELINED: Final = 32
"""The most requests that may wait for the answer to an earlier one of their connection."""


def most_connections() -> int:
    """Return the most connections: half of the files that the process may open, or fewer."""
    if sys.platform == "win32":  # Windows has no such limit
        return MOST_CONNECTIONS
    import resource  # noqa: PLC0415 - not on every platform

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = files == resource.RLIM_INFINITY
    return MOST_CONNECTIONS if unlimited else min(MOST_CONNECTIONS, files // 2)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The most connections, and the seconds that a client has for each of its steps."""

    connections: int = field(default_factory=most_connections)
    head: float = 10.0
    body: float = 45.0
    """A reader of bodies has a shorter deadline, and can answer the client."""

    reading: float = 60.0
    look: float = 1.0
    """Seconds between two looks at the connections."""


class _Connection(HttpToolsProtocol):
    """uvicorn's HTTP/1.1 protocol, within limits."""

    def __init__(self, *args: Any, limits: ConnectionLimits, **others: Any) -> None:
        super().__init__(*args, **others)
        self._limits = limits
        self._unparsed = 0
        self._owed: tuple[object, float] | None = None
        self.since = self.loop.time()
        """When this connection began, was last answered or began to wait for its client."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        others: set[Any] = self.connections
        if len(others) >= self._limits.connections:
            waiting: list[_Connection] = [each for each in others if each.owed]
            held = Counter(map(_address, waiting))
            if waiting:  # the oldest one, of the address with the most
                waiting.sort(key=lambda each: (-held[_address(each)], each.since))
                leaving = next((each for each in waiting if not each.is_unread), waiting[0])
                others.discard(leaving)
                leaving.transport.abort()
            else:
                transport.abort()
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        self._unparsed += len(data)
        super().data_received(data)
        if self._unparsed > HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response(f"A request's head may have {HEAD_BYTES} bytes at most.")

    def on_headers_complete(self) -> None:
        self._unparsed = 0
        # The parser makes 400 of these errors.
        if len(self.pipeline) >= _PIPELINED:
            raise InvalidInput("too many requests before an answer")
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > HEAD_BYTES:
            raise InvalidInput("the head of a request is too large")
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unparsed = 0
        super().on_body(body)

    def on_response_complete(self) -> None:
        self.since = self.loop.time()
        super().on_response_complete()

    def resume_writing(self) -> None:
        self._owed = None  # the client reads
        super().resume_writing()

    @property
    def owed(self) -> tuple[object, float] | None:
        """The client's next step, and its seconds; None while the client waits for the server."""
        cycle: RequestResponseCycle | None = self.cycle
        if unsent := self.transport.get_write_buffer_size():
            return (cycle, unsent), self._limits.reading
        if cycle is None or cycle.response_complete:
            return cycle, self._limits.head
        return (cycle, self._limits.body) if cycle.more_body else None

    @property
    def is_unread(self) -> bool:
        """Whether bytes have come that the server reads next: their client waits for the server.

        Between two looks at the sockets, a busy server accepts connections and reads nothing.
        """
        if sys.platform == "win32" or not self.transport.is_reading():
            return False
        import fcntl  # noqa: PLC0415 - not on every platform
        import termios  # noqa: PLC0415

        connection = self.transport.get_extra_info("socket")
        return any(fcntl.ioctl(connection.fileno(), termios.FIONREAD, bytes(4)))

    def end_if_late(self) -> None:
        """End the connection if its client has owed the same step for too long."""
        owed, now = self.owed, self.loop.time()
        if owed != self._owed:
            self._owed, self.since = owed, now
        elif owed is not None and now - self.since >= owed[1]:
            self.transport.abort()


@asynccontextmanager
async def serving(
    app: ASGIApp,
    host: str,
    port: int,
    *,
    shutdown_timeout: float,
    limits: ConnectionLimits | None = None,
) -> AsyncIterator[str]:
    """Serve an application while the context is open; yields its address.

    When the context ends, requests in hand have `shutdown_timeout` seconds. Raises InvalidSettings
    if the server cannot listen at `host` and `port`.
    """
    limits = limits or ConnectionLimits()
    config = uvicorn.Config(
        app,
        access_log=False,
        backlog=_ACCEPTED_AT_ONCE,
        http=partial(_Connection, limits=limits),  # type: ignore[arg-type]
        lifespan="on",
        log_config=None,
        log_level="error",  # the log leaves out clients' errors
        server_header=False,
        timeout_graceful_shutdown=math.ceil(shutdown_timeout),
        ws="none",
    )
    config.load()
    with _listening_socket(host, port) as listener:
        # Not `serve`, which handles signals: they belong to the process.
        server = uvicorn.Server(config)
        server.lifespan = config.lifespan_class(config)
        await server.startup([listener])
        listener.listen(_BACKLOG)  # asyncio has made this what it accepts at once
        looking = asyncio.create_task(_look_at(server, limits), name=f"server on {host}:{port}")
        try:
            yield f"http://{_in_address(host)}:{listener.getsockname()[1]}"
        finally:
            looking.cancel()
            with suppress(asyncio.CancelledError):
                await looking
            await server.shutdown([listener])


async def _look_at(server: uvicorn.Server, limits: ConnectionLimits) -> None:
    while True:
        await server.on_tick(0)  # renews the Date header
        for connection in list(server.server_state.connections):
            connection.end_if_late()  # type: ignore[union-attr]
        await asyncio.sleep(limits.look)


def _listening_socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only on a socket with a named protocol. Without it, a body after its
    # head would wait 40 ms for the acknowledgement of the head.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            problem = "another program listens there; stop it, or choose another port"
        else:
            problem = f"{error.strerror}; choose a host and port of this machine"
        raise InvalidSettings(f"cannot listen on {_in_address(host)}:{port}: {problem}") from None
    return listener


def _in_address(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _address(connection: _Connection) -> str:
    return connection.client[0] if connection.client else ""
