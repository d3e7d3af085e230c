"""The clock port: what time it is, for facts that carry one and for leases that expire."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the time. Nothing that names or identifies anything may depend on it."""

    def now(self) -> datetime:
        """The time of day, with a time zone."""
        ...
