"""Every statement means the same in both dialects, and the writing ones mind conflicts."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import URL, ClauseElement, Executable, create_engine, event

from socratic_bench.adapters.stores.sql import (
    aggregate_statements,
    experiment_statements,
    ledger,
    response_statements,
    states,
)
from socratic_bench.adapters.stores.sql.limits import PauseStatements, ShareStatements
from socratic_bench.adapters.stores.sql.postgresql.backend import PostgreSQLDialect
from socratic_bench.adapters.stores.sql.role import Statements
from socratic_bench.adapters.stores.sql.sqlite.backend import SQLiteDialect
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.adapters.stores.sql.transactions import Insertion, Row, Transaction
from socratic_bench.ports.stores.leases import CallEnd
from tests.contract.store.adapters import opened
from tests.contract.store.facts import a_response, an_experiment, claim_of

DIALECTS = {"sqlite": SQLiteDialect(), "postgresql": PostgreSQLDialect()}

SCANS = (
    "SCAN experiments USING INDEX running_experiments",
    "SCAN owners",
    "SCAN given VIRTUAL TABLE",
)
"""Fully read parts: an index without other experiments, a few owners, and the keys."""


def _texts(name: str) -> dict[str, str]:
    everything = dict[str, Any]()
    modules = aggregate_statements, states, experiment_statements, ledger, response_statements
    for module in modules:
        everything |= vars(module)
    dialect = DIALECTS[name]
    of_limits = PauseStatements(dialect), ShareStatements(dialect)
    for of_role in (*vars(Statements(dialect)).values(), *of_limits):
        everything |= vars(of_role)
    for each, insertion in list(everything.items()):
        if isinstance(insertion, Insertion):
            everything[each] = insertion.statement
    compiler = URL.create(name).get_dialect()()
    return {
        name: " ".join(str(statement.compile(dialect=compiler)).split())
        for name, statement in everything.items()
        if isinstance(statement, Executable) and isinstance(statement, ClauseElement)
    }


@pytest.mark.parametrize("name", ["sqlite", "postgresql"])
def test_every_statement_compiles_for_either_dialect(name: str) -> None:
    texts = _texts(name)
    assert len(texts) >= 20
    assert "ON CONFLICT DO NOTHING RETURNING" in texts["insert_responses"]


def test_sqlite_inserts_what_is_new_without_giving_it_back() -> None:
    statements = Statements(DIALECTS["sqlite"])
    quick = (
        statements.responses.insert_responses,
        statements.aggregates.insert_scores,
        statements.leases.lease,
    )
    assert all(each.only_new.endswith("ON CONFLICT DO NOTHING") for each in quick)


@pytest.mark.parametrize("name", ["sqlite", "postgresql"])
def test_no_text_of_a_lookup_depends_on_how_many_keys_there_are(name: str) -> None:
    assert [name for name, text in _texts(name).items() if "POSTCOMPILE" in text] == []


def test_postgresql_is_given_arrays_and_locks_what_it_takes() -> None:
    texts = _texts("postgresql")
    assert "FROM unnest(" in texts["lease"]
    for name in ("take_cells", "take_spending", "take_calls", "WAIT_FOR_HOLDERS"):
        assert texts[name].endswith("FOR UPDATE")
    for name in ("hold_open", "hold_kept"):
        assert texts[name].endswith("FOR KEY SHARE")


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[Executable]:
    """Collects the statements that are executed from now on."""
    executed: list[Executable] = []
    execute, insert = Transaction.execute, Transaction.insert

    async def count(self: Transaction, statement: Executable, parameters: Any = None) -> Any:
        executed.append(statement)
        return await execute(self, statement, parameters)

    async def count_insertion(
        self: Transaction, insertion: Insertion, rows: Sequence[Row], **others: Any
    ) -> Any:
        executed.append(insertion.statement)
        return await insert(self, insertion, rows, **others)

    monkeypatch.setattr(Transaction, "execute", count)
    monkeypatch.setattr(Transaction, "insert", count_insertion)
    return executed


async def test_calls_without_a_price_cost_no_statement_about_money(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(lambda: SqlStore.from_url(f"sqlite:///{tmp_path}/benchmark.db")) as store:
        experiment = await store.register(an_experiment(budget=5))
        runs = list(experiment.runs())
        executed = _counted(monkeypatch)
        await store.take_leases([claim_of(run, "lease") for run in runs], "a")
        assert len(executed) == 3
        responses = [a_response(run, cost=None) for run in runs]
        await store.record(responses, ["lease"] * len(runs))
        assert len(executed) == 7
        assert not any("spending" in str(statement) for statement in executed)


async def test_calls_with_a_price_cost_as_many_statements_however_many_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(lambda: SqlStore.from_url(f"sqlite:///{tmp_path}/benchmark.db")) as store:
        experiment = await store.register(an_experiment(budget=10_000))
        runs = list(experiment.runs())
        executed = _counted(monkeypatch)
        await store.take_leases([claim_of(run, "lease", 9) for run in runs], "a")
        assert len(executed) == 5
        await store.record([a_response(run, cost=5) for run in runs], ["lease"] * len(runs))
        assert len(executed) == 11


async def test_sqlite_looks_keys_up_in_an_index(tmp_path: Path) -> None:
    path = tmp_path / "benchmark.db"
    async with opened(lambda: SqlStore.from_url(f"sqlite:///{path}")):
        pass
    of, shares = Statements(DIALECTS["sqlite"]), ShareStatements(DIALECTS["sqlite"])
    turns = [("exp", "run-1", 1), ("exp", "run-2", 2)]
    engine = create_engine(f"sqlite:///{path}")
    plans: dict[str, str] = {}

    @event.listens_for(engine, "before_cursor_execute")
    def explain(_connection: Any, cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        cursor.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
        plans[statement] = " ".join(row[-1] for row in cursor.fetchall())

    with engine.connect() as connection:
        connection.execute(of.leases.take_calls, of.leases.keys_of_calls(turns))
        times = {"now": 0, "dead_before": 0, "silent_before": 0}
        keys = of.leases.keys_of_calls(turns, claimant="a", **times)
        connection.execute(of.leases.find_leases, keys)
        connection.execute(of.experiments.hold_open, {"experiment_ids": ["exp", "other"]})
        connection.execute(of.responses.responses, {"run_ids": ["run-1", "run-2"]})
        connection.execute(
            response_statements.UNSCORED_RESPONSES, {"experiment_id": "exp", "limit": 1}
        )
        connection.execute(experiment_statements.LIST_RUNNING)
        connection.execute(shares.delete_shares, shares.keys_of_shares([("gpt", "a")]))
        cells = of.aggregates.keys_of_cells(
            [("exp", "a/b", "scenario", turn, "v1") for turn in (1, 2)]
        )
        connection.execute(of.aggregates.take_cells, cells)
    engine.dispose()
    assert len(plans) == 8
    for scan in SCANS:
        plans = {statement: plan.replace(scan, "") for statement, plan in plans.items()}
    assert [plan for plan in plans.values() if "SCAN" in plan] == []


async def test_what_is_in_flight_is_found_without_reading_every_call(tmp_path: Path) -> None:
    path = tmp_path / "benchmark.db"
    async with opened(lambda: SqlStore.from_url(f"sqlite:///{path}")):
        pass
    spending = str(ledger.SPENDINGS.compile(dialect=URL.create("sqlite").get_dialect()()))
    with closing(sqlite3.connect(path)) as connection:
        parameters = [0] * spending.count("?")
        plan = connection.execute(f"EXPLAIN QUERY PLAN {spending}", parameters).fetchall()
    assert any("calls USING INDEX reservations" in row[-1] for row in plan)


async def test_a_call_that_is_settled_is_not_looked_at_again_for_what_is_in_flight(
    tmp_path: Path,
) -> None:
    path = tmp_path / "benchmark.db"
    async with opened(lambda: SqlStore.from_url(f"sqlite:///{path}")) as store:
        experiment = await store.register(an_experiment(budget=1_000))
        id_, runs = experiment.experiment_id, list(experiment.runs())
        claims = [claim_of(run, "lease", 5) for run in runs]
        await store.take_leases(claims, "a")
        responses = [a_response(run, cost=3) for run in runs[2:]]
        await store.record(responses, ["lease"] * len(responses))
        await store.record([a_response(runs[1], cost=None)], ["lease"])
        await store.end_calls([CallEnd(claims[0].key, billed=True)])
        assert (await store.spending(id_)).in_flight == 0
    with closing(sqlite3.connect(path)) as connection:
        [(reservations,)] = connection.execute("SELECT count(*) FROM calls WHERE reserved > 0")
    assert reservations == 0
