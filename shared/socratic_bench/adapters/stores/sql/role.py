"""The base of every role of the SQL store."""

from __future__ import annotations

from socratic_bench.adapters.stores.sql.clock import Clock, Now
from socratic_bench.adapters.stores.sql.database import Database
from socratic_bench.adapters.stores.sql.statements import Statements
from socratic_bench.errors import StoreError


class SqlRole:
    """A database, the statements in its dialect, and its clock."""

    def __init__(self, database: Database, now: Now | None = None) -> None:
        self._database = database
        self._statements = Statements(database.dialect)
        self._clock = Clock(database.dialect.server_time, now)

    def _no_experiment(self, experiment_id: str) -> StoreError:
        return StoreError(f"{self._database.name}: there is no experiment {experiment_id}")
