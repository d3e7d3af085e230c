"""Access control: the names that the API answers to, the pages that may write, and keys.

A page of another site can make a person's browser send requests to this API. Two checks keep it
out: the names in `Host`, since its own name may resolve to this API (DNS rebinding), and
`Origin`. Keys keep other clients out.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from functools import lru_cache
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from socratic_api.http.problems import problem
from socratic_api.settings import ApiSettings
from socratic_bench.errors import InvalidSettings

OPEN_TO_ALL: Final = frozenset({"/healthz", "/readyz"})
"""Paths for monitoring, open under any name and without a key."""

_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_TWO_LENGTHS: Final = frozenset({b"content-length", b"transfer-encoding"})
"""A proxy and this server may see different ends of such a request: one smuggles another in."""

_CHALLENGE: Final = {"WWW-Authenticate": 'Bearer, Basic realm="Socratic Bench", charset="UTF-8"'}
_NO_KEYS: Final = (
    "listening on {host} lets other machines in: set SOCRATIC_API_KEYS to a key for writing, or "
    "SOCRATIC_LOOPBACK_ONLY=true if only this machine reaches the port, as with a container's port "
    "that is published on 127.0.0.1"
)


# D-132: a warning goes unread in a container.
def require_keys(settings: ApiSettings) -> None:
    """Raise InvalidSettings if other machines could write without a key, or if no key is listed."""
    if settings.reads_need_key and not settings.api_keys:
        raise InvalidSettings(
            "SOCRATIC_READS_NEED_KEY: there are no keys; list some in SOCRATIC_API_KEYS"
        )
    beyond = not (is_loopback(settings.host) or settings.loopback_only)
    if beyond and not settings.api_keys:
        raise InvalidSettings(_NO_KEYS.format(host=settings.host))


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches a listener at `host`."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class RequestAccess:
    """Decides about requests by their headers."""

    def __init__(self, settings: ApiSettings) -> None:
        self._keys = [_digest(key.get_secret_value().encode()) for key in settings.api_keys]
        self._reads_need_key = settings.reads_need_key
        self._listed = frozenset(map(_name_in, settings.allowed_hosts))
        self._origins = frozenset(settings.cors_origins)
        self._names = self._listed | _LOOPBACK_NAMES | {_name_in(settings.host)}
        self._is_ours = lru_cache(maxsize=256)(self._answers_to)

    def refusal(self, scope: Scope) -> Response | None:
        """Return why a request is refused; None for a permitted one."""
        if scope["path"] in OPEN_TO_ALL:
            return None
        reads = scope["method"] in _READING
        host = origin = authorization = None
        names = set()
        for name, value in scope["headers"]:
            names.add(name)
            if name == b"host":
                host = value
            elif name == b"origin":
                origin = value
            elif name == b"authorization":
                authorization = value
        if names >= _TWO_LENGTHS:
            return problem(
                400,
                "content-length: a chunked body has none; send one of the two headers",
                {"Connection": "close"},
            )
        server = scope.get("server")
        if host is None or not self._is_ours(host, server[0] if server else ""):
            return _wrong_name(host)
        if origin is not None and not reads and not self._may_write(origin, host):
            return problem(
                403,
                "origin: a page of another site may not write here; if it is yours, name its host "
                "in SOCRATIC_ALLOWED_HOSTS, or its origin in SOCRATIC_CORS_ORIGINS",
            )
        if self._keys and not (reads and not self._reads_need_key):
            return self._key_problem(authorization)
        return None

    def _answers_to(self, host: bytes, own_address: str) -> bool:
        """Return whether `Host` is a name of this API, or the address that was called.

        A page can have its own name resolve to this API, but not an address.
        """
        name = _name_in(host.decode("latin-1"))
        return name in self._names or name == own_address.lower().removeprefix("::ffff:")

    def _may_write(self, origin: bytes, host: bytes) -> bool:
        """Return whether a page at `origin` belongs to this API, or to an allowed host or site."""
        if origin.decode("latin-1").lower() in self._origins:
            return True
        try:
            authority = urlsplit(origin.decode("latin-1")).netloc.lower()
        except ValueError:
            return False
        own = host.decode("latin-1").lower()
        return bool(authority) and (authority == own or _name_in(authority) in self._listed)

    def _key_problem(self, authorization: bytes | None) -> Response | None:
        given = _key_in(authorization)
        if given is None:
            detail = "authorization: this needs a key; send `Authorization: Bearer KEY`"
            return problem(401, detail, _CHALLENGE)
        digest = _digest(given)
        # Constant-time comparison with every key: the duration reveals nothing.
        if not sum(hmac.compare_digest(digest, key) for key in self._keys):
            detail = "authorization: no such key; SOCRATIC_API_KEYS lists those there are"
            return problem(401, detail, _CHALLENGE)
        return None


class CheckAccess:
    """Middleware that answers refused requests."""

    def __init__(self, app: ASGIApp, access: RequestAccess) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._access.refusal(scope) if scope["type"] == "http" else None
        await (refusal or self._app)(scope, receive, send)


def _wrong_name(host: bytes | None) -> Response:
    name = "" if host is None else host.decode("latin-1")[:100]
    return problem(
        421,
        f"host: this API does not answer to {name!r}; ask by its address, or list the name in "
        "SOCRATIC_ALLOWED_HOSTS",
    )


def _name_in(authority: str) -> str:
    """Return the host in `host:port`, in lower case and without the brackets of an IPv6 address."""
    authority = authority.strip().lower()
    if authority.startswith("["):
        return authority[1:].partition("]")[0]
    name = authority.rpartition(":")[0] if authority.count(":") == 1 else authority
    return name.rstrip(".")


def _key_in(authorization: bytes | None) -> bytes | None:
    """Return the key in `Bearer KEY`, or the password in `Basic`, as browsers send it."""
    scheme, _, given = (authorization or b"").partition(b" ")
    match scheme.lower():
        case b"bearer":
            return given.strip()
        case b"basic":
            try:
                return base64.b64decode(given.strip(), validate=True).partition(b":")[2]
            except binascii.Error:
                return None
    return None


def _digest(key: bytes) -> bytes:
    """Hash a key, so that keys of any length compare in equal time."""
    return hashlib.sha256(key).digest()
