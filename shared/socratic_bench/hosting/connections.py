"""Limits of connections: a slow client loses its connection, by deadline or to another client.

uvicorn limits neither the time in which a client sends a request or reads an answer, nor the number
of open connections. The guard checks the connections every second, at no cost to a request.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

MOST_CONNECTIONS: Final = 512
"""The most connections. Each takes some 20 KB, and as much again while its request arrives."""

GRACE_SECONDS: Final = 0.25
"""Seconds that a connection has for a request before the guard may end it for another one."""

OTHER_FILES: Final = 128
"""Open files that the process may need for other things, such as its store."""

LEAST_CONNECTIONS: Final = 16

HEAD_BYTES: Final = 16 * 1024
"""The most bytes of a request's head."""

INVALID_REQUEST: Final = (
    b'{"type":"about:blank","title":"Bad Request","status":400,"detail":"'
    b"the server cannot read this as an HTTP request: its head or the form of its body is not that "
    b'of HTTP, or its head exceeds %d bytes; correct it and send it again"}' % HEAD_BYTES
)
"""The server's answer to an unreadable request, as problem details (RFC 9457). The application does
not see the request."""


class Owes(Enum):
    """The client's next step, which the server waits for."""

    HEAD = "send the head of a request"
    BODY = "send the rest of a request"
    READING = "read the answer"


DEADLINES: Final[Mapping[Owes, float]] = {
    Owes.HEAD: 10.0,
    Owes.BODY: 45.0,
    Owes.READING: 60.0,
}
"""Seconds. A reader of bodies has a shorter deadline, and can answer the client."""


class GuardedProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 protocol, with the limits of a guard."""

    def __init__(
        self,
        config: Config,
        server_state: GuardedState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._guard = server_state.guard
        self._seen: tuple[object, Owes] | None = None
        self._owes_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._guard.add(self, self.loop.time())

    def connection_lost(self, exc: Exception | None) -> None:
        self._guard.remove(self)
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        self._guard.put_last(self, self.loop.time())
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP request as the application answers its errors."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.abort()  # another answer has begun: this one would lie in its body
            return
        headers = [
            (b"content-type", b"application/problem+json"),
            (b"content-length", b"%d" % len(INVALID_REQUEST)),
            (b"x-content-type-options", b"nosniff"),
            (b"connection", b"close"),
        ]
        for event in (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=INVALID_REQUEST),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    @property
    def owes(self) -> Owes | None:
        """The client's next step; None while the client waits for the server."""
        cycle: RequestResponseCycle | None = self.cycle
        if self.transport.get_write_buffer_size():
            return Owes.READING
        if cycle is None or cycle.response_complete:
            return Owes.HEAD
        return Owes.BODY if cycle.more_body else None

    def check(self, now: float, deadlines: Mapping[Owes, float]) -> None:
        """End the connection if its client has owed the same step for too long."""
        owes = self.owes
        seen = None if owes is None else (self.cycle, owes)
        if seen is None or seen != self._seen:
            self._seen, self._owes_since = seen, now
        elif now - self._owes_since >= deadlines[seen[1]]:
            self.transport.abort()


class Guard:
    """The connections of a server."""

    def __init__(
        self,
        most: int | None = None,
        deadlines: Mapping[Owes, float] = DEADLINES,
        grace: float = GRACE_SECONDS,
    ) -> None:
        """`most` limits the connections; None: as many as the open files allow."""
        self._most = most_connections() if most is None else most
        self._deadlines = deadlines
        self._grace = grace
        self._open: dict[GuardedProtocol, float] = {}
        """The time of each connection's last answer, or of its begin; the earliest first."""

    def makes_room(self, now: float) -> bool:
        """Whether the server may accept another connection; may end one for it.

        It ends the oldest one that waits for its client, of the address with the most such ones.
        """
        if len(self._open) < self._most:
            return True
        old = [each for each, since in self._open.items() if since + self._grace <= now]
        waiting = [each for each in old if each.owes is not None]
        if not waiting:
            return False
        held = Counter(map(_address, waiting))
        leaving = max(waiting, key=lambda each: held[_address(each)])
        del self._open[leaving]
        leaving.transport.abort()
        return True

    def add(self, connection: GuardedProtocol, now: float) -> None:
        """Add a new connection."""
        self._open[connection] = now

    def remove(self, connection: GuardedProtocol) -> None:
        """Remove an ended connection."""
        self._open.pop(connection, None)

    def put_last(self, connection: GuardedProtocol, now: float) -> None:
        """Note that the server answered a request of this connection."""
        if self._open.pop(connection, None) is not None:
            self._open[connection] = now

    def check(self, now: float) -> None:
        """End connections whose clients are past their deadlines."""
        for connection in list(self._open):
            connection.check(now, self._deadlines)


class GuardedState(ServerState):
    """The shared state of a server's connections, with its guard."""

    def __init__(self, guard: Guard) -> None:
        super().__init__()
        self.guard = guard


def most_connections() -> int:
    """Return the most connections that the limit of open files allows, up to MOST_CONNECTIONS."""
    if sys.platform == "win32":  # Windows has no such limit
        return MOST_CONNECTIONS
    import resource  # noqa: PLC0415 - not on every platform

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(LEAST_CONNECTIONS, min(MOST_CONNECTIONS, files - OTHER_FILES))


def _address(connection: GuardedProtocol) -> str:
    return connection.client[0] if connection.client else ""
