"""The clock that leases, heartbeats and shares are judged by: one for all who use a database.

The processes that share a SQLite file share a machine, and so its clock. Those that share a
PostgreSQL server do not, and ask the server.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from sqlalchemy import BigInteger, cast, func, select

from socratic_bench.adapters.sql.records import microseconds
from socratic_bench.adapters.sql.transactions import Transaction

Now = Callable[[], datetime]

_SERVER_TIME = select(cast(func.extract("epoch", func.clock_timestamp()) * 1_000_000, BigInteger))


class Clock:
    """Tells the time in microseconds since 1970-01-01 UTC."""

    def __init__(self, dialect: str, now: Now | None) -> None:
        """With `now`, that is the time, whatever the database."""
        if now is None and dialect != "postgresql":
            now = _machine_time
        self._now = now

    async def now(self, transaction: Transaction) -> int:
        if self._now is not None:
            return microseconds(self._now())
        [(time,)] = await transaction.execute(_SERVER_TIME)
        return int(time)


def _machine_time() -> datetime:
    return datetime.now(UTC)
