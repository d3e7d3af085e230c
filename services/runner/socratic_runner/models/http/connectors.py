"""Opens connections, reuses them only if they stayed silent, and words why one failed."""

from __future__ import annotations

import os
import re
import select
from typing import Any, Final
from weakref import WeakSet

import aiohttp

from socratic_runner.models.access import new_socket

KEPT_SECONDS: Final = 4.0
"""Seconds that an idle connection is kept: many servers close theirs after 5 s."""

_NUMBERS: Final = re.compile(r"\[Errno (\d+)\]")
"""The beginning of the message where several addresses were tried."""


class SingleUseConnector(aiohttp.TCPConnector):
    """Opens a connection for each call, for servers without TLS."""

    # D-141: llama.cpp's server closes connections without a word.
    def __init__(self) -> None:
        super().__init__(limit=0, force_close=True, socket_factory=new_socket)


class QuietConnector(aiohttp.TCPConnector):
    """Closes an idle connection that received bytes: an unexpected reply, or its end.

    aiohttp checks only whether a connection is open, and would give such a reply to the next call.
    A server that lost a call gets a connection for each call from then on.
    """

    def __init__(self) -> None:
        super().__init__(limit=0, keepalive_timeout=KEPT_SECONDS, socket_factory=new_socket)
        self._is_trusted = True
        self._used: WeakSet[object] = WeakSet()

    async def connect(self, *args: Any, **kwargs: Any) -> aiohttp.connector.Connection:
        """Return a new connection, or an idle one that is quiet."""
        while True:
            connection = await super().connect(*args, **kwargs)
            if (protocol := connection.protocol) not in self._used:
                self._used.add(protocol)
                return connection
            if self._is_trusted and _is_quiet(connection):
                return connection
            connection.close()

    def distrust(self) -> None:
        """Note that the server lost a call."""
        self._is_trusted = False


def _is_quiet(connection: aiohttp.connector.Connection) -> bool:
    """Return whether no byte arrived on an idle connection, read by this process or not."""
    protocol, transport = connection.protocol, connection.transport
    if protocol is None or protocol.should_close or transport is None:
        return False
    if not hasattr(select, "poll"):
        return False
    # A transport over TLS whose connection has ended has none, although it is not closed yet.
    connected = transport.get_extra_info("socket")
    descriptor = -1 if connected is None else connected.fileno()
    if descriptor < 0:
        return False
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return not poll.poll(0)


def why(error: BaseException) -> str:
    """Return the reason of a failed connection on one line: the system's message, if any."""
    if isinstance(error, aiohttp.ClientConnectorDNSError) and error.os_error.strerror:
        return _lower_first(error.os_error.strerror)
    if type(error) is aiohttp.ClientConnectorError:
        number = _number(error.os_error)
        return _lower_first(str(error.os_error) if number is None else os.strerror(number))
    return str(error) or type(error).__name__


def _lower_first(said: str) -> str:
    return said[:1].lower() + said[1:]


def _number(error: OSError) -> int | None:
    """Return the number of an operating system's error; None for several numbers."""
    if error.errno is not None:
        return error.errno if error.errno > 0 else None
    numbers = {int(number) for number in _NUMBERS.findall(str(error))}
    return numbers.pop() if len(numbers) == 1 else None
