"""Opens sockets to permitted addresses only.

The check runs right before the connect, on the same address: a name that resolves differently
the next time gains nothing.
"""

from __future__ import annotations

import socket
from typing import Any

from socratic_bench.providers.endpoints.refused_addresses import REFUSED, is_refused


class RefusedAddress(OSError):
    """A name leads to a forbidden address."""


def refuse(address: str) -> None:
    """Raise RefusedAddress for a forbidden address."""
    if is_refused(address):
        # One message for all addresses of a name: aiohttp then reports it alone.
        raise RefusedAddress(f"its name leads to {REFUSED}, which is never called")


# D-075: checked here and not by name, since a name may change its address in between.
def new_socket(address: tuple[Any, ...]) -> socket.socket:
    """Open a socket for an address from getaddrinfo. Raises RefusedAddress."""
    refuse(address[4][0])
    return socket.socket(address[0], address[1], address[2])


def refused_address(error: BaseException) -> RefusedAddress | None:
    """Return the RefusedAddress behind an error of a library, if any."""
    cause: BaseException | None = error
    for _ in range(10):
        if cause is None or isinstance(cause, RefusedAddress):
            return cause
        cause = getattr(cause, "os_error", None) or cause.__cause__ or cause.__context__
    return None
