"""A database as a newer version leaves it: with more fields and tables, and rows of new kinds."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from socratic_bench.adapters.stores.sql.migrations.upgrade import HEAD
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.ports.stores.responses import RecordedFailure
from tests.contract.store.facts import (
    a_failure,
    a_response,
    a_score,
    an_experiment,
    record_unleased,
)

EXPERIMENT = an_experiment(budget=1_000_000)
ANSWERED, FAILED, UNSCORED, UNFOLDED, *_ = EXPERIMENT.runs()
UNREADABLE = "exp-unreadable"
"""An experiment of a kind that this version does not know."""

UNREADABLE_RUN = "run-unreadable"
"""A run whose failure is of a kind that this version does not know."""

NEW_KIND = '{"kind": "of a later version"}'
NEW_TURN = 9
"""Where the rows are that this version cannot read."""


async def make(path: Path) -> None:
    """Make the database: one experiment with a row of each kind, and one unreadable row of each."""
    store = SqlStore.from_url(f"sqlite:///{path}")
    await store.prepare()
    await store.register(EXPERIMENT)
    await record_unleased(store, [a_response(ANSWERED), a_response(UNSCORED)])
    await store.record_failures(
        [RecordedFailure(a_failure(run), retry=0) for run in (FAILED, UNFOLDED)]
    )
    await store.fold([a_score(ANSWERED)], [a_failure(FAILED)])
    await store.close()
    with closing(sqlite3.connect(path)) as connection:
        _add_fields(connection)
        _add_unreadable_rows(connection)
        connection.execute("ALTER TABLE cells ADD COLUMN mood TEXT NOT NULL DEFAULT 'curious'")
        connection.execute("CREATE TABLE opinions (run_id TEXT PRIMARY KEY, opinion TEXT)")
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.execute("UPDATE schema_readers SET oldest = ?", [HEAD])
        connection.commit()


def manifest(path: Path) -> Any:
    """The manifest of the experiment, as it is stored."""
    with closing(sqlite3.connect(path)) as connection:
        statement = "SELECT manifest FROM experiments WHERE experiment_id = ?"
        [(text,)] = connection.execute(statement, [EXPERIMENT.experiment_id])
    return json.loads(text)


def _add_fields(connection: sqlite3.Connection) -> None:
    def to_manifest(fields: dict[str, Any]) -> None:
        parts = (*fields["models"], *fields["scenarios"], fields["parameters"])
        for part in (fields, *parts, fields["models"][0]["limits"]):
            part["mood"] = {"since": 2027}

    def to_fact(fields: dict[str, Any]) -> None:
        fields["mood"] = "curious"
        for part in (fields.get("run"), fields.get("usage")):
            if part is not None:
                part["mood"] = "curious"

    _change(connection, "experiments", "manifest", to_manifest)
    for table in ("responses", "scores", "failures", "failed_runs", "cells"):
        _change(connection, table, "record", to_fact)


def _change(
    connection: sqlite3.Connection, table: str, column: str, add: Callable[[dict[str, Any]], None]
) -> None:
    for rowid, text in connection.execute(f"SELECT rowid, {column} FROM {table}").fetchall():
        fields = json.loads(text)
        add(fields)
        changed = [to_json(fields).decode(), rowid]
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", changed)


def _add_unreadable_rows(connection: sqlite3.Connection) -> None:
    for table, key in (
        ("responses", {"run_id": ANSWERED.run_id, "turn": NEW_TURN}),
        ("responses", {"run_id": UNSCORED.run_id, "turn": NEW_TURN}),
        ("scores", {"turn": NEW_TURN}),
        ("failures", {"profile": "of-a-later-version"}),
        ("failed_runs", {"run_id": UNREADABLE_RUN}),
        ("cells", {"turn": NEW_TURN}),
    ):
        _copy_row(connection, table, {**key, "record": NEW_KIND})
    _copy_row(connection, "calls", {"run_id": UNSCORED.run_id, "turn": NEW_TURN})
    _copy_row(connection, "experiments", {"experiment_id": UNREADABLE, "manifest": NEW_KIND})


def _copy_row(connection: sqlite3.Connection, table: str, changes: dict[str, Any]) -> None:
    cursor = connection.execute(f"SELECT * FROM {table} LIMIT 1")
    names = [column[0] for column in cursor.description]
    row = dict(zip(names, cursor.fetchone(), strict=True)) | changes
    given = ", ".join("?" for _ in names)
    connection.execute(f"INSERT INTO {table} VALUES ({given})", [row[name] for name in names])
