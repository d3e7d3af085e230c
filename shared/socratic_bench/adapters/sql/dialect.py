"""How a statement is given many rows, or many keys, at once: each database has its own best way.

All ways mean the same. A statement about keys has one text, prepared once, however many there are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column, ColumnElement, Executable, Table

from socratic_bench.adapters.sql.transactions import Insertion, Parameters, Row

Columns = Sequence[Column[Any]]


class Dialect(ABC):
    """What statements are made of where databases differ, and their parameters."""

    server_time: Executable | None
    """Gives the time in microseconds since 1970-01-01 UTC, for all processes that use the database.
    None: they share a machine, and so its clock."""

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


def key_of(table: Table) -> tuple[str, ...]:
    """The columns of a table's key."""
    return tuple(each.name for each in table.primary_key)
