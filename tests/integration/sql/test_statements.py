"""Every statement means the same in both dialects, and the writing ones mind conflicts."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import URL, ClauseElement, Executable, create_engine, event

from socratic_bench.adapters.sql import statements
from socratic_bench.adapters.sql.batched import Lookups, Writes
from socratic_bench.adapters.sql.dialects import DIALECTS
from socratic_bench.adapters.sql.store import SqlStore
from socratic_bench.adapters.sql.transactions import Transaction
from socratic_bench.ports.store import Claim, TurnKey
from tests.contract.store.adapters import opened
from tests.contract.store.facts import MINUTE, MONDAY, a_response, an_experiment, lease


def _texts(name: str) -> dict[str, str]:
    dialect = DIALECTS[name]
    everything = {**vars(statements), **vars(Writes(dialect)), **vars(Lookups(dialect))}
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


def test_postgresql_is_given_arrays_so_that_no_text_depends_on_how_many_there_are() -> None:
    texts = _texts("postgresql")
    assert [name for name, text in texts.items() if "POSTCOMPILE" in text] == []
    assert "FROM unnest(" in texts["lease"]
    for name in ("take_cells", "take_spending", "take_reservations"):
        assert texts[name].endswith("FOR UPDATE")


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[Executable]:
    """Collects the statements that are executed from now on."""
    executed: list[Executable] = []
    execute = Transaction.execute

    async def count(self: Transaction, statement: Executable, parameters: Any = None) -> Any:
        executed.append(statement)
        return await execute(self, statement, parameters)

    monkeypatch.setattr(Transaction, "execute", count)
    return executed


async def test_calls_without_a_price_cost_no_statement_about_money(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(lambda: SqlStore.from_url(f"sqlite:///{tmp_path}/benchmark.db")) as store:
        experiment = await store.register(an_experiment(budget=5))
        runs = list(experiment.runs())
        executed = _counted(monkeypatch)
        turns = [TurnKey(run.run_id, 1) for run in runs]
        await lease(store, experiment.experiment_id, turns, "a", MONDAY, MONDAY + MINUTE)
        assert len(executed) == 2
        await store.record([a_response(run, cost=None) for run in runs])
        assert len(executed) == 3


async def test_sqlite_looks_keys_up_in_an_index(tmp_path: Path) -> None:
    path = tmp_path / "benchmark.db"
    async with opened(lambda: SqlStore.from_url(f"sqlite:///{path}")):
        pass
    lookups = Lookups(DIALECTS["sqlite"])
    turns = [("exp", "run-1", 1), ("exp", "run-2", 2)]
    calls = lookups.keys_of_calls(turns)
    engine = create_engine(f"sqlite:///{path}")
    plans: dict[str, str] = {}

    @event.listens_for(engine, "before_cursor_execute")
    def explain(_connection: Any, cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        cursor.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
        plans[statement] = " ".join(row[-1] for row in cursor.fetchall())

    with engine.connect() as connection:
        connection.execute(lookups.take_reservations, calls)
        connection.execute(lookups.end_reservations, calls)
        connection.execute(lookups.held_calls, lookups.keys_of_calls(turns, owner="a", now=0))
        connection.execute(lookups.delete_shares, lookups.keys_of_shares([("gpt", "a")]))
        cells = lookups.keys_of_cells([("exp", "a/b", "scenario", turn, "v1") for turn in (1, 2)])
        connection.execute(lookups.take_cells, cells)
    engine.dispose()
    assert len(plans) == 5
    assert [plan for plan in plans.values() if not plan.startswith("SEARCH ")] == []


async def test_what_is_in_flight_is_found_without_reading_every_call(tmp_path: Path) -> None:
    path = tmp_path / "benchmark.db"
    async with opened(lambda: SqlStore.from_url(f"sqlite:///{path}")):
        pass
    spending = str(statements.FIND_SPENDING.compile(dialect=URL.create("sqlite").get_dialect()()))
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
        claims = [Claim(TurnKey(run.run_id, 1), 5) for run in runs]
        await store.lease(id_, claims, "a", MONDAY, MONDAY + MINUTE)
        await store.record([a_response(run, cost=3) for run in runs[1:]])
        await store.release(id_, [claims[0].turn], "a", paid=True)
    with closing(sqlite3.connect(path)) as connection:
        [(reservations,)] = connection.execute("SELECT count(*) FROM calls WHERE reserved > 0")
    assert reservations == 0
