"""Tables that PostgreSQL has not counted yet: no query compares all rows with all others."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import ClauseElement, text
from sqlalchemy.dialects import postgresql as dialects

from socratic_bench.adapters.stores.sql import response_statements as responses
from socratic_bench.adapters.stores.sql.database import Database, backend_for
from socratic_bench.adapters.stores.sql.postgresql.backend import PostgreSQLDialect
from socratic_bench.adapters.stores.sql.role import Statements
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.ports.stores.responses import RecordedFailure
from tests.contract.store.adapters import opened
from tests.contract.store.facts import (
    a_failure,
    a_response,
    a_score,
    an_experiment,
    record_unleased,
)
from tests.servers import postgresql

pytestmark = pytest.mark.connected

RUNS = 400
TO_SCORE = Statements(PostgreSQLDialect()).aggregates.runs_to_score
LOOKUPS = {
    "unscored responses": responses.UNSCORED_RESPONSES,
    "unfolded failures": responses.UNFOLDED_FAILURES,
    "runs to score": TO_SCORE,
}


def _compared(plan: dict[str, Any]) -> float:
    """The pairs of rows that did not match, in the executed plan."""
    here = plan.get("Rows Removed by Join Filter", 0) * plan["Actual Loops"]
    return here + sum(_compared(part) for part in plan.get("Plans", ()))


async def _plan(database: Database, lookup: ClauseElement, values: dict[str, Any]) -> Any:
    compiled = lookup.compile(dialect=dialects.dialect(paramstyle="named"))
    readable = str(compiled).replace("::", " ::")  # `text` takes `:name::` for no parameter
    statement = text(f"EXPLAIN (ANALYZE, FORMAT JSON) {readable}")
    async with database.read() as transaction:
        [(plan,)] = await transaction.execute(statement, {**compiled.params, **values})
    return (json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]


async def test_a_look_at_what_is_missing_costs_no_more_for_each_run_in_tables_not_counted_yet() -> (
    None
):
    async with postgresql.new_database() as url:
        async with opened(lambda: SqlStore.from_url(url)) as store:
            experiment = await store.register(an_experiment(models=1, scenarios=2, repeats=RUNS))
            answered, failed = (list(experiment.runs())[part::2] for part in (0, 1))
            await postgresql.execute(url, "ANALYZE")
            await record_unleased(store, [a_response(run) for run in answered])
            failures = [a_failure(run) for run in failed]
            await store.record_failures([RecordedFailure(each, 0) for each in failures])
            await store.fold([a_score(run) for run in answered], failures)
            id_ = experiment.experiment_id
            assert await store.unscored_responses(id_, 1) == []
            assert await store.unfolded_failures(id_, 1) == []
        values = {
            "experiment_id": id_,
            "limit": 1,
            "profile": None,
            "run_ids": [run.run_id for run in answered],
        }
        database = Database(backend_for(url))
        try:
            compared = {
                name: _compared(await _plan(database, lookup, values))
                for name, lookup in LOOKUPS.items()
            }
        finally:
            await database.close()
        assert compared == dict.fromkeys(LOOKUPS, 0)
