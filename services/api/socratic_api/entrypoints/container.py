"""The API as a process of its own, and as part of another one."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog
import uvicorn
from starlette.applications import Starlette

from socratic_api.bootstrap import build_app
from socratic_api.settings import ApiSettings
from socratic_bench.addresses import open_store
from socratic_bench.errors import InvalidSettings, SocraticBenchError
from socratic_bench.ports.store import Store
from socratic_bench.service_settings import load_settings

_BACKLOG = 2048
_log = structlog.get_logger()


class _Server(uvicorn.Server):
    """A server that says when it listens and lets its caller clean up after a signal."""

    def __init__(self, config: uvicorn.Config, listening: Callable[[], None]) -> None:
        super().__init__(config)
        self._listening = listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._listening()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """SIGINT and SIGTERM end the serving; raised again afterwards they would end the process
        before its store is closed.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        wanted = (signal.SIGINT, signal.SIGTERM)
        before = {each: signal.signal(each, self.handle_exit) for each in wanted}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)


async def serve(
    store: Store,
    host: str,
    port: int,
    on_ready: Callable[[str], None],
    settings: ApiSettings | None = None,
) -> None:
    """Serve the API and the dashboard until SIGINT or SIGTERM, or until cancelled.

    `on_ready` is called with the address once connections are accepted. The store is the caller's:
    prepared before, closed after. Raises InvalidSettings where nobody can listen at `host` and
    `port`.
    """
    settings = settings or load_settings(ApiSettings)
    app = build_app(store, settings)
    await serve_app(app, host, port, on_ready, settings.shutdown_timeout)


async def serve_app(
    app: Starlette, host: str, port: int, on_ready: Callable[[str], None], shutdown_timeout: int
) -> None:
    """Serve an application as `serve` does; requests in hand have `shutdown_timeout` seconds."""
    with _listening_socket(host, port) as listener:
        address = f"http://{_in_address(host)}:{listener.getsockname()[1]}"
        config = uvicorn.Config(
            app,
            access_log=False,
            lifespan="on",
            log_config=None,
            server_header=False,
            timeout_graceful_shutdown=shutdown_timeout,
            ws="none",
        )
        server = _Server(config, lambda: on_ready(address))
        serving = asyncio.create_task(server.serve([listener]))
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            server.should_exit = True
            await serving
            raise


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


async def _run(settings: ApiSettings) -> None:
    store = open_store(settings.store_url)
    try:
        async with asyncio.timeout(settings.store_timeout):
            await store.prepare()
        await serve(
            store,
            settings.host,
            settings.port,
            lambda address: _log.info("serving", address=address),
            settings,
        )
    finally:
        await store.close()


def main() -> int:
    """Run the service until it is told to stop; returns the exit code."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
    )
    try:
        asyncio.run(_run(load_settings(ApiSettings)))
    except InvalidSettings as error:
        sys.stderr.write(f"socratic_api: {error}\n")
        return 2
    except (SocraticBenchError, TimeoutError) as error:
        sys.stderr.write(f"socratic_api: {str(error) or 'the store does not answer'}\n")
        return 1
    return 0
