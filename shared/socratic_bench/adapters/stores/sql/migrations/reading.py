"""The check that this version can read a database without upgrading its schema."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Select, column, select, table

from socratic_bench.adapters.stores.sql.migrations.upgrade import HEAD, newer_schema
from socratic_bench.errors import StoreBroken

OLDEST_READABLE: Final = "0006"
"""The oldest schema that has every table and column which reports and the API read."""

REVISION: Final[Select[Any]] = select(column("version_num")).select_from(table("alembic_version"))
"""Selects the migration of a database."""

OLDEST_READER: Final[Select[Any]] = select(column("oldest")).select_from(table("schema_readers"))
"""Selects the oldest version that may use a database, by the version that migrated it."""


def refuse_unreadable(database: str, revision: str, oldest_reader: str | None) -> None:
    """Raise StoreBroken for a schema that is too old, or too new, for this version."""
    if revision < OLDEST_READABLE:
        raise StoreBroken(
            f"{database}: its schema ({revision}) is older than this version of Socratic Bench "
            f"reads ({OLDEST_READABLE} or newer), and reading leaves it as it is; "
            "`socratic-bench run CONFIG` or `submit CONFIG` with this store upgrades it"
        )
    if revision > HEAD and (oldest_reader is None or oldest_reader > HEAD):
        raise newer_schema(database, revision)
