"""The clock that leases, heartbeats and shares are judged by: one for all who use a database.

The processes that share a SQLite file share a machine, and so its clock. Those that share a
PostgreSQL server do not, and ask the server.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from sqlalchemy import Executable

from socratic_bench.adapters.sql.records import microseconds
from socratic_bench.adapters.sql.transactions import Transaction

Now = Callable[[], datetime]


class Clock:
    """Tells the time in microseconds since 1970-01-01 UTC."""

    def __init__(self, server_time: Executable | None, now: Now | None) -> None:
        """With `now`, that is the time; else what `server_time` gives, or the machine's clock."""
        self._server_time = server_time
        self._now = now

    async def now(self, transaction: Transaction) -> int:
        if self._now is not None:
            return microseconds(self._now())
        if self._server_time is None:
            return microseconds(datetime.now(UTC))
        [(time,)] = await transaction.execute(self._server_time)
        return int(time)
