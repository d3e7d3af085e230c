"""The resources that a model client may use, and the addresses that no client reaches.

The check of an address runs right before the connect, on the same address: a name that resolves
differently the next time gains nothing.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from socratic_bench.providers.base_urls import REFUSED, is_refused
from socratic_bench.providers.endpoints import KeySource
from socratic_bench.providers.spec import Destination


@dataclass(frozen=True, slots=True)
class Access:
    """The folder, the address and the key that a model client may use."""

    base_folder: Path | None
    where: Destination | None
    """None: the client uses no network, or its provider's library knows the address."""

    key: KeySource | None
    """None: the client sends no key."""


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
