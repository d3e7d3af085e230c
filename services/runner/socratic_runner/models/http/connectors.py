"""Reuses a connection only if it stayed silent since its last reply, and words why one failed."""

from __future__ import annotations

import os
import re
import select
import ssl
from collections.abc import Callable
from contextvars import ContextVar
from time import monotonic
from typing import TYPE_CHECKING, Final

import aiohttp

from socratic_runner.models.access import new_socket

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.client_reqrep import ClientRequest, ConnectionKey
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

KEPT_SECONDS: Final = 4.0
"""Seconds that an idle connection is kept: many servers close theirs after 5 s."""

# D-141: llama.cpp's server closes connections without a word.
REST_SECONDS: Final = 0.5
"""Seconds that a connection without TLS rests before its next call."""

MOST_RESTING: Final = 24
"""The most idle connections without TLS for one model."""

ON_CONNECTED: Final[ContextVar[Callable[[], None] | None]] = ContextVar(
    "on_connected", default=None
)
"""Called when a request of this context has its connection, and is sent."""

_NUMBERS: Final = re.compile(r"\[Errno (\d+)\]")
"""The beginning of the message where several addresses were tried."""


class QuietConnector(aiohttp.TCPConnector):
    """Closes an idle connection that received bytes: an unexpected reply, or its end.

    aiohttp checks only whether a connection is open, and would give such a reply to the next call.
    A server that lost a call gets a connection for each call from then on.
    """

    def __init__(self) -> None:
        super().__init__(limit=0, keepalive_timeout=KEPT_SECONDS, socket_factory=new_socket)
        self._is_trusted = True

    async def connect(
        self,
        req: ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - as aiohttp has it
    ) -> Connection:
        connection = await super().connect(req, traces, timeout)
        if (on_connected := ON_CONNECTED.get()) is not None:
            on_connected()
        return connection

    async def _get(self, key: ConnectionKey, traces: list[Trace]) -> Connection | None:
        self.drop_ended(key)
        return await super()._get(key, traces) if self._is_trusted else None

    def _release(
        self, key: ConnectionKey, protocol: ResponseHandler, *, should_close: bool = False
    ) -> None:
        should_close = should_close or not self._is_trusted
        super()._release(key, protocol, should_close=should_close)

    def drop_ended(self, key: ConnectionKey) -> bool:
        """Close idle connections that received bytes, from the oldest on; tells of any."""
        idle = self._conns.get(key)
        ended = False
        while idle and not _is_quiet(idle[0][0]):
            idle.popleft()[0].abort()
            ended = True
        return ended

    def distrust(self) -> None:
        """Note that the server lost a call."""
        self._is_trusted = False


class RestedConnector(QuietConnector):
    """Reuses a connection after a rest, unless the server lost a call or ended a connection.

    Some servers end a connection after a reply without announcing it. A call on it before the end
    arrives is lost, so a connection rests for longer than that takes. Meanwhile calls open other
    connections: without TLS a new one costs no wait.
    """

    async def _get(self, key: ConnectionKey, traces: list[Trace]) -> Connection | None:
        if self.drop_ended(key):
            self.distrust()
        idle = self._conns.get(key)
        if not self._is_trusted or not idle or monotonic() - idle[0][1] < REST_SECONDS:
            return None
        return await super(QuietConnector, self)._get(key, traces)

    def _release(
        self, key: ConnectionKey, protocol: ResponseHandler, *, should_close: bool = False
    ) -> None:
        full = len(self._conns.get(key, ())) >= MOST_RESTING
        super()._release(key, protocol, should_close=should_close or full)


def _is_quiet(protocol: ResponseHandler) -> bool:
    """Return whether no byte arrived on an idle connection, read by this process or not."""
    transport = protocol.transport
    if protocol.should_close or transport is None or not hasattr(select, "poll"):
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
    if found := _tls_error(error):
        return _lower_first(getattr(found, "verify_message", "") or found.reason or str(found))
    if isinstance(error, aiohttp.ClientConnectorError):
        number = _number(error.os_error)
        return _lower_first(str(error.os_error) if number is None else os.strerror(number))
    return str(error) or type(error).__name__


_TRUST: Final = (
    "set SSL_CERT_FILE to a file with the certificate of the authority that signed it, such as "
    "that of a company's proxy"
)
_CERTIFICATES: Final = {
    10: "the certificate has expired: have its server's operator renew it, or check this clock",
    9: "the certificate is not valid yet: check this machine's clock",
    62: "the certificate is for another name: base_url must have the name in the certificate",
    64: "the certificate is for other names: base_url must have a name, not an address",
}
"""What mends a certificate, by OpenSSL's number of its fault."""

_HANDSHAKES: Final = {
    "WRONG_VERSION_NUMBER": "this port speaks no TLS: begin base_url with http://",
    "HTTP_REQUEST": "this port speaks no TLS: begin base_url with http://",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it wants a client's certificate, which is not sent",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "it wants a client's certificate, or another kind of TLS",
    "UNSUPPORTED_PROTOCOL": "it speaks TLS 1.1 or older, which is not safe",
    "TLSV1_ALERT_PROTOCOL_VERSION": "it does not speak this version of TLS",
    "TLSV1_UNRECOGNIZED_NAME": "it does not know the name in base_url",
}


def tls_remedy(error: BaseException) -> str:
    """Return what mends a refused TLS connection; empty for a failure that may pass."""
    found = _tls_error(error)
    if isinstance(found, ssl.SSLCertVerificationError):
        return _CERTIFICATES.get(found.verify_code, _TRUST)
    return "" if found is None else _HANDSHAKES.get(found.reason or "", "")


def _tls_error(error: BaseException) -> ssl.SSLError | None:
    """Return the error of TLS behind a failed connection, if any."""
    # aiohttp's own error derives from SSLError, and lacks its fields.
    inner = (getattr(error, name, None) for name in ("certificate_error", "os_error", "__cause__"))
    return next((each for each in inner if isinstance(each, ssl.SSLError)), None)


def _lower_first(said: str) -> str:
    return said if said[1:2].isupper() else said[:1].lower() + said[1:]


def _number(error: OSError) -> int | None:
    """Return the number of an operating system's error; None for several numbers."""
    if error.errno is not None:
        return error.errno if error.errno > 0 else None
    numbers = {int(number) for number in _NUMBERS.findall(str(error))}
    return numbers.pop() if len(numbers) == 1 else None
