"""Connections within limits: whoever keeps the server waiting gives way, to time and to others.

uvicorn bounds neither how long a client may take to send a request or to read an answer, nor how
many connections stay open. Here the connections are looked at every second. Looking costs a
request nothing.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

MOST_CONNECTIONS: Final = 512
"""Connections at most. Each takes some 20 KB, and as much again while its request arrives."""

GRACE: Final = 0.25
"""Seconds that a connection has for a request before it may have to give way to another one."""

OTHER_FILES: Final = 128
"""Files that stay free for everything else the process opens, such as its store."""

LEAST_CONNECTIONS: Final = 16

HEAD_BYTES: Final = 16 * 1024
"""The size of a request's head at most."""


class Owes(Enum):
    """What a server waits for that only the client can do."""

    HEAD = "the head of a request, the first or another one"
    BODY = "the rest of a request"
    READING = "that it reads what was sent"


DEADLINES: Final[Mapping[Owes, float]] = {
    Owes.HEAD: 10.0,
    Owes.BODY: 45.0,
    Owes.READING: 60.0,
}
"""Seconds. Whoever reads a body has a shorter deadline, and can say so to the client."""


class GuardedProtocol(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it, in a connection that its server keeps within limits."""

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

    @property
    def owes(self) -> Owes | None:
        """What is waited for that only the client can do; None while it waits for the server."""
        cycle: RequestResponseCycle | None = self.cycle
        if self.transport.get_write_buffer_size():
            return Owes.READING
        if cycle is None or cycle.response_complete:
            return Owes.HEAD
        return Owes.BODY if cycle.more_body else None

    def check(self, now: float, deadlines: Mapping[Owes, float]) -> None:
        """End the connection if its client has owed the same for too long."""
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
        grace: float = GRACE,
    ) -> None:
        """At `most` so many, or as many as there are files for."""
        self._most = most_connections() if most is None else most
        self._deadlines = deadlines
        self._grace = grace
        self._open: dict[GuardedProtocol, float] = {}
        """Since when each was of no use: those first where that is the longest."""

    def makes_room(self, now: float) -> bool:
        """Whether another connection may be accepted; one may have to give way to it.

        That is the oldest that waits for its client, of the address with the most of them.
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
        """Know a new connection."""
        self._open[connection] = now

    def remove(self, connection: GuardedProtocol) -> None:
        """Forget a connection that has ended."""
        self._open.pop(connection, None)

    def put_last(self, connection: GuardedProtocol, now: float) -> None:
        """Note that a connection was of use: a request of it was answered."""
        if self._open.pop(connection, None) is not None:
            self._open[connection] = now

    def check(self, now: float) -> None:
        """End the connections whose clients have let the server wait for too long."""
        for connection in list(self._open):
            connection.check(now, self._deadlines)


class GuardedState(ServerState):
    """What the connections of a server share, its guard included."""

    def __init__(self, guard: Guard) -> None:
        super().__init__()
        self.guard = guard


def most_connections() -> int:
    """How many connections the limit of open files leaves room for, MOST_CONNECTIONS at most."""
    if sys.platform == "win32":  # which has no such limit
        return MOST_CONNECTIONS
    import resource  # noqa: PLC0415 - not on every platform

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(LEAST_CONNECTIONS, min(MOST_CONNECTIONS, files - OTHER_FILES))


def _address(connection: GuardedProtocol) -> str:
    return connection.client[0] if connection.client else ""
