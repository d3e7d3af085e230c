"""The clock port: the time of facts and of leases."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the time. No name or id may depend on it."""

    def now(self) -> datetime:
        """Return the current time, with a time zone."""
        ...
