"""The clock of this machine."""

from __future__ import annotations

from datetime import UTC, datetime


class SystemClock:
    """The clock of this machine, in UTC."""

    def now(self) -> datetime:
        return datetime.now(UTC)
