"""What every part of the SQL store works with."""

from __future__ import annotations

from socratic_bench.adapters.sql.batched import Lookups, Writes
from socratic_bench.adapters.sql.clock import Clock, Now
from socratic_bench.adapters.sql.database import Database
from socratic_bench.adapters.sql.dialects import DIALECTS
from socratic_bench.adapters.sql.lease_statements import LeaseStatements
from socratic_bench.errors import StoreError


class SqlPart:
    """A database, and the statements in its dialect."""

    def __init__(self, database: Database, now: Now | None = None) -> None:
        self._database = database
        dialect = DIALECTS[database.dialect]
        self._writes = Writes(dialect)
        self._lookups = Lookups(dialect)
        self._leases = LeaseStatements(dialect)
        self._clock = Clock(database.dialect, now)

    def _no_experiment(self, experiment_id: str) -> StoreError:
        return StoreError(f"{self._database.name}: there is no experiment {experiment_id}")
