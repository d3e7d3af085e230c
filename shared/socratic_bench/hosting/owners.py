"""The name of a process in the store, as the owner of leases."""

from __future__ import annotations

import os
import secrets
import socket


def new_owner(kind: str) -> str:
    """A name that no other process has or ever had: `kind`, the host, the process, and chance."""
    return f"{kind}-{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
