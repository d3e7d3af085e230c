"""A server for an ASGI application inside a process that also does other work."""

from __future__ import annotations

import asyncio
import errno
import math
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

import structlog
import uvicorn
from starlette.types import ASGIApp

from socratic_bench.errors import InvalidSettings
from socratic_bench.hosting.connections import HEAD_BYTES, Guard, GuardedProtocol, GuardedState

log = structlog.get_logger(__name__)

_BACKLOG: Final = 1024
"""Connections that the kernel holds until the server accepts them."""

_RECEIVE_BYTES: Final = 64 * 1024
"""Bytes that the kernel holds of a connection before the server reads them; the kernel doubles this
for itself. The server also reads at most so many bytes at once."""

_ROOM_CHECK_SECONDS: Final = 0.05
"""Seconds until the server checks again for room for another connection."""

_TICKS_BETWEEN_CHECKS: Final = 10
"""uvicorn's server ticks ten times a second."""


class _Server(uvicorn.Server):
    """A server that reports when it listens, guards its connections, and handles no signals."""

    def __init__(self, config: uvicorn.Config, guard: Guard) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()
        self.server_state = self._guarded = GuardedState(guard)
        self._guard = guard
        self._accepting: list[asyncio.Task[None]] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        # D-131: asyncio accepts before the guard can count.
        await super().startup([])  # asyncio would accept any number of connections
        self._accepting = [asyncio.create_task(self._accept(each)) for each in sockets or ()]
        self.listening.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for accepting in self._accepting:
            accepting.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        await super().shutdown(sockets)

    async def _accept(self, listener: socket.socket) -> None:
        """Accept connections while there is room for them; others wait in the kernel."""
        loop = asyncio.get_running_loop()
        while True:
            if not self._guard.makes_room(loop.time()):
                await asyncio.sleep(_ROOM_CHECK_SECONDS)
                continue
            try:
                accepted, _ = await loop.sock_accept(listener)
                await loop.connect_accepted_socket(self._new_protocol, accepted)
            except OSError as error:
                log.warning("a connection could not be accepted", reason=str(error))
                await asyncio.sleep(_ROOM_CHECK_SECONDS)

    def _new_protocol(self) -> asyncio.Protocol:
        return GuardedProtocol(self.config, self._guarded, self.lifespan.state)

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS_BETWEEN_CHECKS == 0:
            self._guard.check(asyncio.get_running_loop().time())
        return await super().on_tick(counter)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serving(
    app: ASGIApp, host: str, port: int, *, shutdown_timeout: float, guard: Guard | None = None
) -> AsyncIterator[str]:
    """Serve an application while the context is open; yields its address.

    When the context ends, requests in hand have `shutdown_timeout` seconds. The `guard` limits the
    connections; None takes the default limits. Raises InvalidSettings if the server cannot listen
    at `host` and `port`.
    """
    with _listening_socket(host, port) as listener:
        config = uvicorn.Config(
            app,
            access_log=False,
            h11_max_incomplete_event_size=HEAD_BYTES,
            http=GuardedProtocol,
            lifespan="on",
            log_config=None,
            log_level="error",  # the log leaves out clients' errors
            server_header=False,
            timeout_graceful_shutdown=math.ceil(shutdown_timeout),
            ws="none",
        )
        server = _Server(config, guard or Guard())
        running = asyncio.create_task(server.serve([listener]), name=f"server on {host}:{port}")
        try:
            await _until_listening(server, running)
            yield f"http://{_in_address(host)}:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await running


async def _until_listening(server: _Server, running: asyncio.Task[None]) -> None:
    listening = asyncio.create_task(server.listening.wait())
    try:
        await asyncio.wait({listening, running}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        listening.cancel()
    if running.done():
        running.result()


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
        listener.setblocking(False)  # noqa: FBT003 - its name says it
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
