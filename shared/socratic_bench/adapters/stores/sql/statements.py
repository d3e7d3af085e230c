"""The statements of every role, made for one dialect."""

from __future__ import annotations

from socratic_bench.adapters.stores.sql.aggregates.statements import AggregateStatements
from socratic_bench.adapters.stores.sql.dialect import Dialect
from socratic_bench.adapters.stores.sql.experiments.statements import ExperimentStatements
from socratic_bench.adapters.stores.sql.leases.statements import LeaseStatements
from socratic_bench.adapters.stores.sql.limits.pausing import PauseStatements
from socratic_bench.adapters.stores.sql.limits.sharing import ShareStatements
from socratic_bench.adapters.stores.sql.responses.statements import ResponseStatements


class Statements:
    """The statements of all roles: a transaction may use several, as in storing a response."""

    def __init__(self, dialect: Dialect) -> None:
        self.experiments = ExperimentStatements(dialect)
        self.responses = ResponseStatements(dialect)
        self.leases = LeaseStatements(dialect)
        self.shares = ShareStatements(dialect)
        self.pauses = PauseStatements(dialect)
        self.aggregates = AggregateStatements(dialect)
