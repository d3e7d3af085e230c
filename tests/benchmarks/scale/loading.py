"""Writes many rows at once: by one statement for many in SQLite, by COPY in PostgreSQL."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from typing import Any
from urllib.parse import urlsplit

import asyncpg

from tests.benchmarks.filled_stores import Loader

_UPDATES = {
    "completed": ("experiments", "completed_at"),
    "spent": ("spending", "committed"),
}
"""What is no table: a column of one that changes."""


class SqliteLoader:
    """Writes without waiting for the disk: a benchmark's store is made again after a crash."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    async def load(self, table: str, rows: Sequence[dict[str, Any]]) -> None:
        if not rows:
            return
        columns = list(rows[0])
        if table in _UPDATES:
            name, column = _UPDATES[table]
            statement = (
                f"UPDATE {name} SET {column} = :{column} WHERE experiment_id = :experiment_id"
            )
        else:
            values = ", ".join(f":{column}" for column in columns)
            statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})"
        with self._connection:
            self._connection.executemany(statement, rows)


class PostgresqlLoader:
    """Writes by COPY."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def load(self, table: str, rows: Sequence[dict[str, Any]]) -> None:
        if not rows:
            return
        columns = list(rows[0])
        if table in _UPDATES:
            name, column = _UPDATES[table]
            await self._connection.executemany(
                f"UPDATE {name} SET {column} = $1 WHERE experiment_id = $2",
                [(row[column], row["experiment_id"]) for row in rows],
            )
            return
        await self._connection.copy_records_to_table(
            table, records=[tuple(row.values()) for row in rows], columns=columns
        )


@asynccontextmanager
async def loader_of(store_url: str) -> AsyncIterator[Loader]:
    """A loader for the store at an address; the statistics of its planner are new at the end."""
    if store_url.startswith("sqlite"):
        with closing(sqlite3.connect(store_url.removeprefix("sqlite:///"))) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            yield SqliteLoader(connection)
        return
    parts = urlsplit(store_url)
    connection = await asyncpg.connect(parts._replace(scheme="postgresql").geturl())
    try:
        await connection.execute("SET synchronous_commit = off")
        yield PostgresqlLoader(connection)
        await connection.execute("VACUUM (ANALYZE)")
    finally:
        await connection.close()
