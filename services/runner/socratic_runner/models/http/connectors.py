"""Connections that are used again only where nothing has come on them since their last reply."""

from __future__ import annotations

import select
from typing import TYPE_CHECKING, Final

import aiohttp

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.client_reqrep import ConnectionKey
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

KEPT_SECONDS: Final = 4.0
"""How long an idle connection is kept: many servers close theirs after 5 s."""


class QuietConnector(aiohttp.TCPConnector):
    """Closes an idle connection on which something came, a reply that nobody asked for or its end.

    aiohttp asks only whether a connection is open, and gives such a reply to the next call.
    """

    async def _get(self, key: ConnectionKey, traces: list[Trace]) -> Connection | None:
        idle = self._conns.get(key)
        while idle and not _is_quiet(idle[0][0]):
            idle.popleft()[0].abort()
        return await super()._get(key, traces)


def _is_quiet(protocol: ResponseHandler) -> bool:
    """Whether no byte has come on an idle connection, read by this process or not."""
    transport = protocol.transport
    if protocol.should_close or transport is None or not hasattr(select, "poll"):
        return False
    descriptor = transport.get_extra_info("socket").fileno()
    if descriptor < 0:
        return False
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return not poll.poll(0)
