"""Sockets for addresses that may be called.

An address is looked at right before it is connected to, and it is this one that is connected to: a
name that leads elsewhere the next time it is asked for gains nothing.
"""

from __future__ import annotations

import socket
from typing import Any

from socratic_bench.providers.endpoints.refused_addresses import REFUSED, is_refused


class RefusedAddress(OSError):
    """A name leads to an address that is never called."""


def refuse(address: str) -> None:
    """Raise RefusedAddress for an address that is never called."""
    if is_refused(address):
        # In the same words for all addresses of a name, so that connecting fails with just this.
        raise RefusedAddress(f"its name leads to {REFUSED}, which is never called")


# D-075: judged here and not by name, since a name may change its address in between.
def new_socket(address: tuple[Any, ...]) -> socket.socket:
    """A socket for an address as getaddrinfo gives it. Raises RefusedAddress."""
    refuse(address[4][0])
    return socket.socket(address[0], address[1], address[2])


def refused_address(error: BaseException) -> RefusedAddress | None:
    """The RefusedAddress that an error of a library came of, if it did."""
    cause: BaseException | None = error
    for _ in range(10):
        if cause is None or isinstance(cause, RefusedAddress):
            return cause
        cause = getattr(cause, "os_error", None) or cause.__cause__ or cause.__context__
    return None
