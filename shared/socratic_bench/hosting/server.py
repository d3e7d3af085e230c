"""Serving an ASGI application from within a process that does other things too."""

from __future__ import annotations

import asyncio
import errno
import math
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from socratic_bench.errors import InvalidSettings

_BACKLOG: Final = 2048


class _Server(uvicorn.Server):
    """A server that says when it listens, and leaves signals to its process."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serving(
    app: ASGIApp, host: str, port: int, *, shutdown_timeout: float
) -> AsyncIterator[str]:
    """Serve an application while the context is open; gives its address.

    When the context ends, requests in hand have `shutdown_timeout` seconds. Raises InvalidSettings
    where nobody can listen at `host` and `port`.
    """
    with _listening_socket(host, port) as listener:
        config = uvicorn.Config(
            app,
            access_log=False,
            lifespan="on",
            log_config=None,
            server_header=False,
            timeout_graceful_shutdown=math.ceil(shutdown_timeout),
            ws="none",
        )
        server = _Server(config)
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
    # Only where the protocol is named does asyncio send small packets at once (TCP_NODELAY): a
    # body that follows its head would wait 40 ms for the acknowledgement of the head.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
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
