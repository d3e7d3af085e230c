"""PostgreSQL as the database of a store: its dialect and its engines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Column,
    ColumnElement,
    Table,
    Text,
    any_,
    bindparam,
    cast,
    column,
    func,
    select,
    text,
    tuple_,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.sql.selectable import NamedFromClause
from sqlalchemy.types import TypeEngine

from socratic_bench.adapters.stores.sql.database import Backend
from socratic_bench.adapters.stores.sql.dialect import Columns, Dialect, key_of
from socratic_bench.adapters.stores.sql.postgresql import engine, errors
from socratic_bench.adapters.stores.sql.postgresql.address import parse
from socratic_bench.adapters.stores.sql.transactions import Insertion, Parameters, Row


class PostgreSQLDialect(Dialect):
    """An array for each column."""

    tables = text(
        "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() "
        "UNION ALL SELECT viewname FROM pg_views WHERE schemaname = current_schema()"
    )
    server_time = select(
        cast(func.extract("epoch", func.clock_timestamp()) * 1_000_000, BigInteger)
    )

    def insert(self, table: Table) -> postgresql.Insert:
        given = _given(list(table.columns))
        names = [each.name for each in table.columns]
        return postgresql.insert(table).from_select(names, select(*given.columns))

    def insertion(self, table: Table, insert: Any) -> Insertion:
        return Insertion(insert.returning(*table.primary_key), key_of(table), self.rows)

    def rows(self, rows: Sequence[Row], **others: Any) -> Parameters:
        names = rows[0].keys() if rows else ()
        return {f"given_{name}": [row[name] for row in rows] for name in names} | others

    def among(self, values: Column[Any], parameter: str) -> ColumnElement[bool]:
        return values == any_(bindparam(parameter, type_=_array_of(values)))

    def keyed(self, columns: Columns) -> ColumnElement[bool]:
        return tuple_(*columns).in_(select(*_given(columns).columns))

    def keys(self, columns: Columns, keys: Sequence[Sequence[Any]], **others: Any) -> Parameters:
        arrays = zip(*keys, strict=True)
        given = zip(columns, arrays, strict=True)
        return {f"given_{each.name}": list(array) for each, array in given} | others

    def entry(self, text: Column[Any], *path: str) -> ColumnElement[str]:
        # PostgreSQL unescapes the whole object, and fails at a NUL anywhere in it. Backslashes go
        # first, so that a remaining `\\u0000` is a NUL.
        without_nul = func.replace(func.replace(text, r"\\", "__"), r"\u0000", "")
        return func.json_extract_path_text(cast(without_nul, postgresql.JSON), *path)

    def with_entry(
        self, texts: Column[Any], key: Column[Any], value: Column[Any]
    ) -> ColumnElement[str]:
        known = cast(func.coalesce(texts, "{}"), postgresql.JSONB)
        return cast(known.concat(func.jsonb_build_object(key, value)), Text)


DIALECT: Final = PostgreSQLDialect()
"""Has no state, so that all stores share it and its statements."""


def _given(columns: Columns) -> NamedFromClause:
    """Return the rows whose columns are the arrays `given_…`."""
    arrays = [bindparam(f"given_{each.name}", type_=_array_of(each)) for each in columns]
    names = [column(each.name, each.type) for each in columns]
    return func.unnest(*arrays).table_valued(*names, name="given").render_derived()


def _array_of(values: Column[Any]) -> ARRAY[Any]:
    # An array's type has no collation.
    element: TypeEngine[Any] = Text() if isinstance(values.type, Text) else values.type
    return ARRAY(element)


def postgresql_backend(url: str) -> Backend:
    """Return the backend of `postgresql://…`. Raises InvalidSettings without a database's name."""
    address = parse(url)
    return Backend(
        name=address.name,
        dialect=DIALECT,
        create=lambda: engine.create_database(address),
        migrate=lambda work: engine.migrate(address, work),
        writing=lambda: engine.writing_engine(address),
        writers=engine.WRITERS,
        reading=lambda: engine.reading_engine(address),
        readers=engine.READERS,
        errors=errors.ERRORS,
        explain=lambda error: errors.explain(error, address.name),
    )
