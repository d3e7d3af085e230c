"""The store in an SQL database."""

from __future__ import annotations

from sqlalchemy import select

from socratic_bench.adapters.stores.sql.aggregates import SqlAggregates
from socratic_bench.adapters.stores.sql.database import Database, backend_for
from socratic_bench.adapters.stores.sql.experiments import SqlExperiments
from socratic_bench.adapters.stores.sql.leases import SqlLeases
from socratic_bench.adapters.stores.sql.limits import SqlSharedLimits
from socratic_bench.adapters.stores.sql.responses import SqlResponses
from socratic_bench.adapters.stores.sql.role import Now
from socratic_bench.adapters.stores.sql.schema import EXPERIMENTS
from socratic_bench.ports.stores.store import Store

_ONE = select(EXPERIMENTS.c.experiment_id).limit(1)
"""A query of a table: an unprepared store does not answer it."""


class SqlStore(SqlExperiments, SqlResponses, SqlLeases, SqlSharedLimits, SqlAggregates, Store):
    """A Store in an SQL database; several processes may use the same one at once.

    A call serves all its items in one transaction, and reads them as of one moment.
    """

    @classmethod
    def from_url(cls, url: str, now: Now | None = None) -> SqlStore:
        """Return the store at `sqlite:///path` or `postgresql://…`, without opening it yet.

        `now` replaces the clock of the database. Raises InvalidSettings for another form of `url`.
        """
        return cls(Database(backend_for(url)), now)

    async def prepare(self) -> None:
        await self._database.prepare()

    async def check_readable(self) -> None:
        await self._database.check_readable()

    async def ping(self) -> None:
        async with self._database.read() as transaction:
            await transaction.execute(_ONE)

    async def close(self) -> None:
        await self._database.close()
