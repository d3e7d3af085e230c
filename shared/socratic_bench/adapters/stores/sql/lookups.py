"""Conditions about another table, whose rows the database looks up by key one at a time.

D-109: PostgreSQL counts the rows of a growing table about once a minute. Until then its planner
takes the table for small, and may compare each row of one table with each row of the other.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import ColumnClause, Exists, Select, exists, literal_column

_FENCE: Final[ColumnClause[int]] = literal_column("0")
"""An offset that skips no row. PostgreSQL joins no query with an offset to the one around it."""


def looked_up(query: Select[Any]) -> Exists:
    """Return the condition that a row of `query` exists, which names a whole key of its table."""
    return exists(query.offset(_FENCE))
