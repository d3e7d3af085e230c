"""Connections to Bedrock: one aiobotocore client for all models that can share it.

A client takes a fifth of a second to make, and its connections serve every model of a region.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from contextlib import AsyncExitStack
from functools import cache
from importlib import import_module
from typing import Any, Final, NamedTuple, Protocol, cast

from socratic_runner.models.access import refuse
from socratic_runner.models.aws.access import BEARER_VARIABLE

_MANY: Final = 10_000
"""The most connections of one client: the limiter bounds the calls before."""

_KEEP_ALIVE_SECONDS: Final = 45
"""Seconds of silence before keep-alive probes: gateways forget silent connections."""


class BedrockRuntime(Protocol):
    """The part of an aiobotocore client that is used here; it has no type stubs."""

    async def converse(self, **request: Any) -> dict[str, Any]: ...

    async def converse_stream(self, **request: Any) -> dict[str, Any]: ...


class Target(NamedTuple):
    """Two models with equal targets share a client."""

    region: str
    endpoint: str | None
    """None: the region's own address."""

    own: bool
    """True for AWS itself: it alone gets a bearer token; calls to other servers are signed."""

    connect_timeout: float
    read_timeout: float
    """Seconds without a byte."""


class BedrockConnection:
    """A shared client, made at the first use. It belongs to one event loop."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._opening: asyncio.Task[BedrockRuntime] | None = None
        self._opened = AsyncExitStack()

    async def runtime(self) -> BedrockRuntime:
        """Return the client. Raises errors of botocore, also for missing credentials.

        All callers wait for one opening, which survives the cancellation of a caller. After a
        failure the next caller tries again.
        """
        if self._opening is None or _failed(self._opening):
            self._opening = asyncio.create_task(self._open())
        return await asyncio.shield(self._opening)

    async def close(self) -> None:
        """Close the client and its connections, also under calls in flight."""
        try:
            if self._opening is not None:
                self._opening.cancel()
                await asyncio.gather(self._opening, return_exceptions=True)
        finally:
            await self._opened.aclose()

    async def _open(self) -> BedrockRuntime:
        _keep_requests_out_of_logs()
        # Imports and service descriptions take half a second: not on the event loop.
        library = await asyncio.to_thread(import_module, "aiobotocore.session")
        config = await asyncio.to_thread(import_module, "aiobotocore.config")
        session = library.get_session()
        session.register_component("data_loader", _descriptions())
        bearer = self._target.own and os.environ.get(BEARER_VARIABLE)
        if not bearer and await session.get_credentials() is None:
            # A client that starts without credentials never gets any.
            raise import_module("botocore.exceptions").NoCredentialsError
        client = session.create_client(
            "bedrock-runtime",
            region_name=self._target.region,
            endpoint_url=self._target.endpoint,
            config=config.AioConfig(
                # An explicit setting precedes a bearer token in the environment.
                signature_version=None if self._target.own else "v4",
                # D-064: one call is one request; the runner retries.
                retries={"total_max_attempts": 1},
                connect_timeout=self._target.connect_timeout,
                read_timeout=self._target.read_timeout,
                max_pool_connections=_MANY,
                warm_up_loader_caches=True,
                connector_args={"socket_factory": kept_alive},
                http_session_cls=_session_without_redirects(),
            ),
        )
        return cast("BedrockRuntime", await self._opened.enter_async_context(client))


@cache
def _descriptions() -> object:
    """Return the shared loader of service descriptions: loading takes a tenth of a second."""
    return import_module("botocore.loaders").create_loader()


@cache
def _session_without_redirects() -> type:
    """Return an HTTP session without redirects, which would forward a session's token."""
    usual = import_module("aiobotocore.httpsession").AIOHTTPSession

    class Session(usual):  # type: ignore[misc, valid-type]
        async def _get_session(self, proxy_url: str | None) -> _WithoutRedirects:
            return _WithoutRedirects(await super()._get_session(proxy_url))

    return Session


class _WithoutRedirects:
    """Sends requests, and returns a redirect as the response."""

    def __init__(self, session: Any) -> None:
        self._session = session

    async def request(self, method: str, **request: Any) -> Any:
        return await self._session.request(method, **request, allow_redirects=False)


def _keep_requests_out_of_logs() -> None:
    """Keep botocore's debug logs off: they contain requests with credentials."""
    for name in ("botocore", "aiobotocore"):
        logger = logging.getLogger(name)
        # Not isEnabledFor: loggers below a disabled one still log.
        if logger.getEffectiveLevel() < logging.INFO:
            logger.setLevel(logging.INFO)


def _failed(opening: asyncio.Task[BedrockRuntime]) -> bool:
    return opening.done() and (opening.cancelled() or opening.exception() is not None)


def kept_alive(address: tuple[Any, ...]) -> socket.socket:
    """Open a keep-alive socket for an address from getaddrinfo.

    aiobotocore ignores its own setting for keep-alive. Raises RefusedAddress.
    """
    refuse(address[4][0])
    made = socket.socket(address[0], address[1], address[2])
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option in ("TCP_KEEPIDLE", "TCP_KEEPINTVL"):
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), _KEEP_ALIVE_SECONDS)
    return made


class SharedConnections:
    """Holds each connection at most once in an event loop, while it has users."""

    def __init__(self) -> None:
        self._in_use: dict[
            tuple[asyncio.AbstractEventLoop, Target], tuple[BedrockConnection, int]
        ] = {}

    def acquire(self, target: Target) -> BedrockConnection:
        """Return the connection to `target`; the caller releases it in the same loop."""
        key = asyncio.get_running_loop(), target
        connection, users = self._in_use.get(key) or (BedrockConnection(target), 0)
        self._in_use[key] = connection, users + 1
        return connection

    async def release(self, target: Target) -> None:
        """Release a connection. Its last user closes it."""
        key = asyncio.get_running_loop(), target
        connection, users = self._in_use.pop(key)
        if users > 1:
            self._in_use[key] = connection, users - 1
        else:
            await connection.close()
