"""The base of every role of the SQL store: a database, the statements in its dialect, a clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache

from sqlalchemy import Executable

from socratic_bench.adapters.stores.records import microseconds
from socratic_bench.adapters.stores.sql.aggregate_statements import AggregateStatements
from socratic_bench.adapters.stores.sql.database import Database
from socratic_bench.adapters.stores.sql.dialect import Dialect
from socratic_bench.adapters.stores.sql.experiment_statements import ExperimentStatements
from socratic_bench.adapters.stores.sql.ledger import LeaseStatements
from socratic_bench.adapters.stores.sql.response_statements import ResponseStatements
from socratic_bench.adapters.stores.sql.transactions import Transaction
from socratic_bench.errors import StoreError

Now = Callable[[], datetime]


class StoreClock:
    """Tells the time in microseconds since 1970-01-01 UTC, one for all processes on a database.

    Processes on one SQLite file share a machine and its clock. Processes on one PostgreSQL server
    take the server's clock.
    """

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


class Statements:
    """The statements of all roles: a transaction may use several, as in storing a response."""

    def __init__(self, dialect: Dialect) -> None:
        self.experiments = ExperimentStatements(dialect)
        self.responses = ResponseStatements(dialect)
        self.leases = LeaseStatements(dialect)
        self.aggregates = AggregateStatements(dialect)


@cache
def statements_in(dialect: Dialect) -> Statements:
    """Return the statements in a dialect, made once: every store on it shares them."""
    return Statements(dialect)


class SqlRole:
    """A database, the statements in its dialect, and its clock."""

    def __init__(self, database: Database, now: Now | None = None) -> None:
        self._database = database
        self._statements = statements_in(database.dialect)
        self._clock = StoreClock(database.dialect.server_time, now)

    def _no_experiment(self, experiment_id: str) -> StoreError:
        return StoreError(f"{self._database.name}: there is no experiment {experiment_id}")
