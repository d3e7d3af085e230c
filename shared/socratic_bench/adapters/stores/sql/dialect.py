"""Dialects: each database has its fastest form of statements about many rows or keys.

All forms mean the same. A statement about keys has one text for any number of keys, and is prepared
once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

from sqlalchemy import (
    Column,
    ColumnClause,
    ColumnElement,
    Executable,
    Exists,
    Select,
    Table,
    exists,
    literal_column,
)

from socratic_bench.adapters.stores.sql.transactions import Insertion, Parameters, Row

CHUNK = 500
"""The most keys in one `SELECT`."""

PAGE = 500
"""The number of rows in a page."""

Item = TypeVar("Item")


def chunks(items: Iterable[Item], size: int = CHUNK) -> Iterator[list[Item]]:
    """Yield `items` in order, `size` at a time."""
    remaining = iter(items)
    while chunk := list(islice(remaining, size)):
        yield chunk


_FENCE: Final[ColumnClause[int]] = literal_column("0")
"""An offset that skips no row. PostgreSQL joins no query with an offset to the one around it."""


def looked_up(query: Select[Any]) -> Exists:
    """Return the condition that a row of `query` exists, which names a whole key of its table.

    D-109: PostgreSQL counts the rows of a growing table about once a minute. Until then its planner
    takes the table for small, and may compare each row of one table with each row of the other.
    """
    return exists(query.offset(_FENCE))


Columns = Sequence[Column[Any]]


class Dialect(ABC):
    """The parts of statements in which databases differ, and their parameters."""

    tables: Executable
    """Selects the names of all tables and views."""

    server_time: Executable | None
    """Selects the time in microseconds since 1970-01-01 UTC, for all processes on the database.
    None: they share a machine and its clock."""

    @abstractmethod
    def insert(self, table: Table) -> Any:
        """Return an `INSERT` of whole rows, which the caller may extend with `ON CONFLICT`."""

    @abstractmethod
    def insertion(self, table: Table, insert: Any) -> Insertion:
        """Return an `insert` into this table that returns the keys of written rows."""

    @abstractmethod
    def rows(self, rows: Sequence[Row], **others: Any) -> Parameters:
        """Return the parameters of an `insert` of these rows, with `others` for all of them."""

    @abstractmethod
    def among(self, values: Column[Any], parameter: str) -> ColumnElement[bool]:
        """Return the condition that a column's value is in the list `parameter`."""

    @abstractmethod
    def keyed(self, columns: Columns) -> ColumnElement[bool]:
        """Return the condition that these columns have the values of one of `keys`."""

    @abstractmethod
    def keys(self, columns: Columns, keys: Sequence[Sequence[Any]], **others: Any) -> Parameters:
        """Return the parameters of `keyed` for these columns, with `others`."""

    @abstractmethod
    def entry(self, text: Column[Any], *path: str) -> ColumnElement[str]:
        """Return the value at a path of the JSON object in `text`, as text to group by.

        It may lack characters that the database cannot hold. SQLite gives 1 for true.
        """

    @abstractmethod
    def with_entry(
        self, texts: Column[Any], key: Column[Any], value: Column[Any]
    ) -> ColumnElement[str]:
        """Return the JSON object in `texts`, or an empty one, with one more entry."""


def key_of(table: Table) -> tuple[str, ...]:
    """Return the columns of a table's key."""
    return tuple(each.name for each in table.primary_key)
