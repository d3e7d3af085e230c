"""The clock of leases, heartbeats and shares: one for all processes on a database.

Processes on one SQLite file share a machine and its clock. Processes on one PostgreSQL server take
the server's clock.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from sqlalchemy import Executable

from socratic_bench.adapters.stores.records import microseconds
from socratic_bench.adapters.stores.sql.transactions import Transaction

Now = Callable[[], datetime]


class Clock:
    """Tells the time in microseconds since 1970-01-01 UTC."""

    def __init__(self, server_time: Executable | None, now: Now | None) -> None:
        """Take the time of `now`; without it, of `server_time`, or else of the machine."""
        self._server_time = server_time
        self._now = now

    async def now(self, transaction: Transaction) -> int:
        if self._now is not None:
            return microseconds(self._now())
        if self._server_time is None:
            return microseconds(datetime.now(UTC))
        [(time,)] = await transaction.execute(self._server_time)
        return int(time)
