"""Connections to Bedrock: one aiobotocore client for all models that can share it.

A client takes a fifth of a second to make, and its connections can serve every model of a region.
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

from socratic_runner.models.aws.access import BEARER_VARIABLE
from socratic_runner.models.connecting import refuse

_MANY: Final = 10_000
"""Connections at a time: whoever asks has a limit of its own."""

_KEEP_ALIVE_SECONDS: Final = 45
"""Of silence, until a connection shows that it is in use: gateways forget those that are not."""


class BedrockRuntime(Protocol):
    """What is used of an aiobotocore client, which has no type stubs."""

    async def converse(self, **request: Any) -> dict[str, Any]: ...

    async def converse_stream(self, **request: Any) -> dict[str, Any]: ...


class Target(NamedTuple):
    """What decides whether two models can share a client."""

    region: str
    endpoint: str | None
    """None: the one of the region."""

    own: bool
    """Whether this is AWS itself: only there goes a bearer token, elsewhere calls are signed."""

    connect_timeout: float
    read_timeout: float
    """Seconds without a byte."""


class Connection:
    """A client that is shared, made when first needed. Belongs to one event loop."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._opening: asyncio.Task[BedrockRuntime] | None = None
        self._opened = AsyncExitStack()

    async def runtime(self) -> BedrockRuntime:
        """The client. Raises what botocore raises, also where there are no credentials.

        All who wait share one opening, which goes on when one of them is cancelled; what failed is
        tried anew by the next.
        """
        if self._opening is None or _failed(self._opening):
            self._opening = asyncio.create_task(self._open())
        return await asyncio.shield(self._opening)

    async def close(self) -> None:
        """Close the client and its connections, whatever still uses them."""
        try:
            if self._opening is not None:
                self._opening.cancel()
                await asyncio.gather(self._opening, return_exceptions=True)
        finally:
            await self._opened.aclose()

    async def _open(self) -> BedrockRuntime:
        _keep_requests_out_of_logs()
        # Importing and reading the descriptions of services take half a second: not in the loop.
        library = await asyncio.to_thread(import_module, "aiobotocore.session")
        config = await asyncio.to_thread(import_module, "aiobotocore.config")
        session = library.get_session()
        session.register_component("data_loader", _descriptions())
        bearer = self._target.own and os.environ.get(BEARER_VARIABLE)
        if not bearer and await session.get_credentials() is None:
            # A client without credentials would never have any.
            raise import_module("botocore.exceptions").NoCredentialsError
        client = session.create_client(
            "bedrock-runtime",
            region_name=self._target.region,
            endpoint_url=self._target.endpoint,
            config=config.AioConfig(
                # Said here, it goes before a bearer token in the environment.
                signature_version=None if self._target.own else "v4",
                # D-065: one call of ours is one call; the runner retries.
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
    """What reads the descriptions of services: once for all clients, a tenth of a second each."""
    return import_module("botocore.loaders").create_loader()


@cache
def _session_without_redirects() -> type:
    """What posts for aiobotocore, which would follow a redirect with a session's token."""
    usual = import_module("aiobotocore.httpsession").AIOHTTPSession

    class Session(usual):  # type: ignore[misc, valid-type]
        async def _get_session(self, proxy_url: str | None) -> _StaysThere:
            return _StaysThere(await super()._get_session(proxy_url))

    return Session


class _StaysThere:
    """Posts, and takes a redirect for an answer."""

    def __init__(self, session: Any) -> None:
        self._session = session

    async def request(self, method: str, **request: Any) -> Any:
        return await self._session.request(method, **request, allow_redirects=False)


def _keep_requests_out_of_logs() -> None:
    """Whoever debugs would be shown the requests by botocore, with the credentials in them."""
    for name in ("botocore", "aiobotocore"):
        logger = logging.getLogger(name)
        # Not isEnabledFor: loggers below one that somebody disabled go on.
        if logger.getEffectiveLevel() < logging.INFO:
            logger.setLevel(logging.INFO)


def _failed(opening: asyncio.Task[BedrockRuntime]) -> bool:
    return opening.done() and (opening.cancelled() or opening.exception() is not None)


def kept_alive(address: tuple[Any, ...]) -> socket.socket:
    """A socket for an address as getaddrinfo gives it, which keeps its connection in use.

    aiobotocore does nothing about its own setting for that. Raises RefusedAddress.
    """
    refuse(address[4][0])
    made = socket.socket(address[0], address[1], address[2])
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option in ("TCP_KEEPIDLE", "TCP_KEEPINTVL"):
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), _KEEP_ALIVE_SECONDS)
    return made


class SharedConnections:
    """Each connection at most once in an event loop, for as long as somebody uses it."""

    def __init__(self) -> None:
        self._in_use: dict[tuple[asyncio.AbstractEventLoop, Target], tuple[Connection, int]] = {}

    def acquire(self, target: Target) -> Connection:
        """The connection to `target`; to be given back by `release`, in the same loop."""
        key = asyncio.get_running_loop(), target
        connection, users = self._in_use.get(key) or (Connection(target), 0)
        self._in_use[key] = connection, users + 1
        return connection

    async def release(self, target: Target) -> None:
        """Give a connection back. The last one to do so closes it."""
        key = asyncio.get_running_loop(), target
        connection, users = self._in_use.pop(key)
        if users > 1:
            self._in_use[key] = connection, users - 1
        else:
            await connection.close()
