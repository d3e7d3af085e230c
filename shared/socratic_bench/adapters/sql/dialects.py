"""How a statement is given many rows, or many keys, at once: each database has its own best way.

Both ways mean the same. SQLite, in this process, is quickest with a row of parameters after the
other, and with keys as one JSON array. PostgreSQL is quickest with an array for each column. A
statement about keys then has one text, prepared once, however many there are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ARRAY,
    JSON,
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
    tuple_,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.selectable import NamedFromClause, TableValuedAlias
from sqlalchemy.types import TypeEngine

from socratic_bench.adapters.sql.transactions import Insertion, Parameters, Row

Columns = Sequence[Column[Any]]


class Dialect(ABC):
    """What statements are made of where databases differ, and their parameters."""

    @abstractmethod
    def insert(self, table: Table) -> Any:
        """An `INSERT` of whole rows, which may go on with what to do about conflicts."""

    @abstractmethod
    def insertion(self, table: Table, insert: Any) -> Insertion:
        """An `insert` of this table, by which one learns which rows were written."""

    @abstractmethod
    def rows(self, rows: Sequence[Row], **others: Any) -> Parameters:
        """The parameters of an `insert` of these rows, and `others`, the same for all of them."""

    @abstractmethod
    def among(self, values: Column[Any], parameter: str) -> ColumnElement[bool]:
        """Whether a column's value is in the list that `parameter` is."""

    @abstractmethod
    def keyed(self, columns: Columns) -> ColumnElement[bool]:
        """Whether these columns have the values of one of `keys`."""

    @abstractmethod
    def keys(self, columns: Columns, keys: Sequence[Sequence[Any]], **others: Any) -> Parameters:
        """The parameters of `keyed` for these columns, and `others`."""

    @abstractmethod
    def entry(self, text: Column[Any], *path: str) -> ColumnElement[str]:
        """What stands at a path in the JSON object that is in `text`, as text to group by.

        It may lack characters that the database cannot hold. SQLite has 1 for true.
        """

    @abstractmethod
    def with_entry(
        self, texts: Column[Any], key: Column[Any], value: Column[Any]
    ) -> ColumnElement[str]:
        """The JSON object that is, or may be, in `texts`, with one more entry."""


class SQLite(Dialect):
    """A row after the other, and all keys in one JSON array."""

    def insert(self, table: Table) -> sqlite.Insert:
        return sqlite.insert(table)

    def insertion(self, table: Table, insert: Any) -> Insertion:
        only_new = sqlite.insert(table).on_conflict_do_nothing()
        return Insertion(insert.returning(*table.primary_key), _key_of(table), self.rows, only_new)

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


class PostgreSQL(Dialect):
    """An array for each column."""

    def insert(self, table: Table) -> postgresql.Insert:
        given = _given(list(table.columns))
        names = [each.name for each in table.columns]
        return postgresql.insert(table).from_select(names, select(*given.columns))

    def insertion(self, table: Table, insert: Any) -> Insertion:
        return Insertion(insert.returning(*table.primary_key), _key_of(table), self.rows)

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
        # first, so that what is left of `\\u0000` is one.
        without_nul = func.replace(func.replace(text, r"\\", "__"), r"\u0000", "")
        return func.json_extract_path_text(cast(without_nul, postgresql.JSON), *path)

    def with_entry(
        self, texts: Column[Any], key: Column[Any], value: Column[Any]
    ) -> ColumnElement[str]:
        known = cast(func.coalesce(texts, "{}"), postgresql.JSONB)
        return cast(known.concat(func.jsonb_build_object(key, value)), Text)


DIALECTS: Mapping[str, Dialect] = {"sqlite": SQLite(), "postgresql": PostgreSQL()}


def _key_of(table: Table) -> tuple[str, ...]:
    return tuple(each.name for each in table.primary_key)


def _each(parameter: str) -> TableValuedAlias:
    """The elements of a parameter that SQLite is given as JSON."""
    return func.json_each(bindparam(parameter, type_=JSON)).table_valued("value", name="given")


def _given(columns: Columns) -> NamedFromClause:
    """The rows whose columns the arrays `given_…` are."""
    arrays = [bindparam(f"given_{each.name}", type_=_array_of(each)) for each in columns]
    names = [column(each.name, each.type) for each in columns]
    return func.unnest(*arrays).table_valued(*names, name="given").render_derived()


def _array_of(values: Column[Any]) -> ARRAY[Any]:
    # How a column is collated is no part of an array's type.
    element: TypeEngine[Any] = Text() if isinstance(values.type, Text) else values.type
    return ARRAY(element)
