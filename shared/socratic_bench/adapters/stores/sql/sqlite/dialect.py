"""SQLite's fastest statements: parameters row by row, all keys in one JSON array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import JSON, Column, ColumnElement, Table, bindparam, func, select, tuple_
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql.selectable import TableValuedAlias

from socratic_bench.adapters.stores.sql.dialect import Columns, Dialect, key_of
from socratic_bench.adapters.stores.sql.transactions import Insertion, Parameters, Row


class SQLiteDialect(Dialect):
    """Parameters row by row, and all keys in one JSON array."""

    server_time = None

    def insert(self, table: Table) -> sqlite.Insert:
        return sqlite.insert(table)

    def insertion(self, table: Table, insert: Any) -> Insertion:
        only_new = sqlite.insert(table).on_conflict_do_nothing()
        return Insertion(insert.returning(*table.primary_key), key_of(table), self.rows, only_new)

    def rows(self, rows: Sequence[Row], **others: Any) -> Parameters:
        return [{**row, **others} for row in rows] if others else rows

    def among(self, values: Column[Any], parameter: str) -> ColumnElement[bool]:
        return values.in_(select(_each(parameter).c.value))

    def keyed(self, columns: Columns) -> ColumnElement[bool]:
        key = _each("keys").c.value
        parts = (func.json_extract(key, f"$[{place}]") for place in range(len(columns)))
        return tuple_(*columns).in_(select(*parts))

    def keys(self, columns: Columns, keys: Sequence[Sequence[Any]], **others: Any) -> Parameters:
        return {"keys": keys} | others

    def entry(self, text: Column[Any], *path: str) -> ColumnElement[str]:
        return func.json_extract(text, ".".join(("$", *path)))

    def with_entry(
        self, texts: Column[Any], key: Column[Any], value: Column[Any]
    ) -> ColumnElement[str]:
        return func.json_patch(func.coalesce(texts, "{}"), func.json_object(key, value))


def _each(parameter: str) -> TableValuedAlias:
    """Return the elements of a JSON parameter."""
    return func.json_each(bindparam(parameter, type_=JSON)).table_valued("value", name="given")
