"""The name of a process in the store, as the owner of leases."""

from __future__ import annotations

import os
import secrets
import socket


def new_owner(kind: str) -> str:
    """Return a unique name of `kind`, host, process and random digits."""
    return f"{kind}-{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
