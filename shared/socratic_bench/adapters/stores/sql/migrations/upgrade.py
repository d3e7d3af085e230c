"""The schema of a database: its upgrade to this version, and whether this version can read it."""

from __future__ import annotations

import threading
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

import structlog
from sqlalchemy import Connection, Select, column, inspect, select, table, text

from socratic_bench.errors import StoreBroken

log = structlog.get_logger(__name__)

_VERSIONS: Final = "alembic_version"
HEAD: Final = "0011"
"""The newest migration."""

# D-119: a rule by number would fail for the first migration that removes something.
OLDEST_READER: Final = "0002"
"""The oldest version, by its newest migration, that may still read and write a schema at HEAD."""

# Alembic keeps the running migration in globals of the process.
_ONE_AT_A_TIME = threading.Lock()


def upgrade(connection: Connection, database: str) -> None:
    """Apply the missing migrations in the transaction of `connection`. Blocks.

    A newer schema stays as it is if its version admits this one; else raises StoreBroken.
    """
    found = inspect(connection)
    refuse_foreign(database, {*found.get_table_names(), *found.get_view_names()})
    if _revision(connection) == HEAD:
        return  # the usual case: loading Alembic takes longer than the rest of a command
    with _ONE_AT_A_TIME:
        _migrate(connection, database)


def _revision(connection: Connection) -> str | None:
    """Return the migration of the database; None for an empty one."""
    if not inspect(connection).has_table(_VERSIONS):
        return None
    row = connection.execute(text("SELECT version_num FROM alembic_version")).first()
    return None if row is None else str(row[0])


def _migrate(connection: Connection, database: str) -> None:
    from alembic import command  # noqa: PLC0415 - see `upgrade`
    from alembic.config import Config  # noqa: PLC0415
    from alembic.migration import MigrationContext  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415
    from alembic.util import CommandError  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["connection"] = connection
    scripts = ScriptDirectory.from_config(config)
    for revision in MigrationContext.configure(connection).get_current_heads():
        try:
            scripts.get_revision(revision)
        except CommandError:
            if _admits_this_version(connection):
                log.info("the schema is newer", database=database, schema=revision, known=HEAD)
                return
            raise newer_schema(database, revision) from None
    command.upgrade(config, HEAD)
    _write_oldest_reader(connection)


_OWN_TABLES: Final = frozenset({"experiments", "responses", "scores"})
"""Tables that every schema of this project has."""

_OF_EXTENSIONS: Final = frozenset(
    {"geography_columns", "geometry_columns", "pg_stat_statements", "pg_stat_statements_info"}
    | {"spatial_ref_sys", "sqlite_sequence"}
)
"""Tables and views that extensions make in an empty database, or SQLite itself."""

_MOST_NAMED: Final = 5


def refuse_foreign(database: str, tables: Collection[str]) -> None:
    """Raise StoreBroken for a database that has tables and views, and not those of this project."""
    others = sorted({*tables} - _OF_EXTENSIONS - {_VERSIONS})
    if not others or (_VERSIONS in tables and {*tables} >= _OWN_TABLES):
        return
    more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
    raise StoreBroken(
        f"{database}: this database belongs to another program (tables "
        f"{', '.join(others[:_MOST_NAMED])}{more}); name a file or a database of its own for "
        "Socratic Bench"
    )


def newer_schema(database: str, revision: str) -> StoreBroken:
    """Return the error for a schema that only newer versions can use."""
    return StoreBroken(
        f"{database}: its schema ({revision}) is newer than this version of Socratic "
        f"Bench, which knows {HEAD}; upgrade Socratic Bench, or use another store"
    )


def _admits_this_version(connection: Connection) -> bool:
    """Whether the version that migrated the database admits this one."""
    if not inspect(connection).has_table("schema_readers"):
        return False
    oldest = connection.execute(text("SELECT oldest FROM schema_readers")).scalar_one_or_none()
    return oldest is not None and oldest <= HEAD


def _write_oldest_reader(connection: Connection) -> None:
    connection.execute(text("CREATE TABLE IF NOT EXISTS schema_readers (oldest TEXT NOT NULL)"))
    connection.execute(text("DELETE FROM schema_readers"))
    connection.execute(
        text("INSERT INTO schema_readers VALUES (:oldest)"), {"oldest": OLDEST_READER}
    )


OLDEST_READABLE: Final = "0006"
"""The oldest schema that has every table and column which reports and the API read."""

FIND_REVISION: Final[Select[Any]] = select(column("version_num")).select_from(
    table("alembic_version")
)
"""Selects the migration of a database."""

FIND_OLDEST_READER: Final[Select[Any]] = select(column("oldest")).select_from(
    table("schema_readers")
)
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
