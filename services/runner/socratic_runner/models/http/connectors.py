"""Connectors that reuse a connection only if it stayed silent since its last reply."""

from __future__ import annotations

import select
from time import monotonic
from typing import TYPE_CHECKING, Final

import aiohttp

from socratic_runner.models.connecting import new_socket

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.client_reqrep import ConnectionKey
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

KEPT_SECONDS: Final = 4.0
"""Seconds that an idle connection is kept: many servers close theirs after 5 s."""

# D-141: llama.cpp's server closes connections without a word.
REST_SECONDS: Final = 0.5
"""Seconds that a connection without TLS rests before its next call."""

MOST_RESTING: Final = 24
"""The most idle connections without TLS for one model."""


class QuietConnector(aiohttp.TCPConnector):
    """Closes an idle connection that received bytes: an unexpected reply, or its end.

    aiohttp checks only whether a connection is open, and would give such a reply to the next call.
    """

    def __init__(self) -> None:
        super().__init__(limit=0, keepalive_timeout=KEPT_SECONDS, socket_factory=new_socket)

    async def _get(self, key: ConnectionKey, traces: list[Trace]) -> Connection | None:
        self.drop_ended(key)
        return await super()._get(key, traces)

    def drop_ended(self, key: ConnectionKey) -> None:
        """Close idle connections that received bytes, from the oldest on."""
        idle = self._conns.get(key)
        while idle and not _is_quiet(idle[0][0]):
            idle.popleft()[0].abort()
            self.distrust()

    def distrust(self) -> None:
        """Note that the server ended a connection unannounced, or sent unexpected bytes."""


class RestedConnector(QuietConnector):
    """Reuses a connection after a rest, unless the server was found to end connections.

    Some servers end a connection after a reply without announcing it. A call on it before the end
    arrives is lost, so a connection rests for longer than that takes. Meanwhile calls open other
    connections: without TLS a new one costs no wait.
    """

    def __init__(self) -> None:
        super().__init__()
        self._is_trusted = True

    async def _get(self, key: ConnectionKey, traces: list[Trace]) -> Connection | None:
        self.drop_ended(key)
        idle = self._conns.get(key)
        if not self._is_trusted or not idle or monotonic() - idle[0][1] < REST_SECONDS:
            return None
        return await super(QuietConnector, self)._get(key, traces)

    def _release(
        self, key: ConnectionKey, protocol: ResponseHandler, *, should_close: bool = False
    ) -> None:
        full = len(self._conns.get(key, ())) >= MOST_RESTING
        should_close = should_close or full or not self._is_trusted
        super()._release(key, protocol, should_close=should_close)

    def distrust(self) -> None:
        self._is_trusted = False


def _is_quiet(protocol: ResponseHandler) -> bool:
    """Return whether no byte arrived on an idle connection, read by this process or not."""
    transport = protocol.transport
    if protocol.should_close or transport is None or not hasattr(select, "poll"):
        return False
    descriptor = transport.get_extra_info("socket").fileno()
    if descriptor < 0:
        return False
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return not poll.poll(0)
