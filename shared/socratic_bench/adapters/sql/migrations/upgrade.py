"""Bringing a database's schema up to this version."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, inspect, text

from socratic_bench.errors import StoreBroken

HEAD: Final = "0002"
"""The newest migration."""

# Alembic keeps the migration at work in globals of the process.
_ONE_AT_A_TIME = threading.Lock()


def upgrade(connection: Connection, database: str) -> None:
    """Apply the migrations that are missing, in the transaction of `connection`. Blocks.

    Raises StoreBroken where the schema comes from a newer version than this.
    """
    if _revision(connection) == HEAD:
        return  # as almost always: loading Alembic takes longer than all else a command does
    with _ONE_AT_A_TIME:
        _migrate(connection, database)


def _revision(connection: Connection) -> str | None:
    """The migration that the database is at; None for an empty one."""
    if not inspect(connection).has_table("alembic_version"):
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
            raise StoreBroken(
                f"{database}: its schema ({revision}) is newer than this version of Socratic "
                f"Bench, which knows {HEAD}; upgrade Socratic Bench, or use another store"
            ) from None
    command.upgrade(config, HEAD)
