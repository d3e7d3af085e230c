"""Bringing a database's schema up to this version."""

from __future__ import annotations

import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection

from socratic_bench.errors import StoreBroken

# Alembic keeps the migration at work in globals of the process.
_ONE_AT_A_TIME = threading.Lock()


def upgrade(connection: Connection, database: str) -> None:
    """Apply the migrations that are missing, in the transaction of `connection`. Blocks.

    Raises StoreBroken where the schema comes from a newer version than this.
    """
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["connection"] = connection
    with _ONE_AT_A_TIME:
        scripts = ScriptDirectory.from_config(config)
        for revision in MigrationContext.configure(connection).get_current_heads():
            _refuse_newer(revision, scripts, database)
        command.upgrade(config, "head")


def _refuse_newer(revision: str, scripts: ScriptDirectory, database: str) -> None:
    try:
        scripts.get_revision(revision)
    except CommandError:
        known = scripts.get_current_head()
        raise StoreBroken(
            f"{database}: its schema ({revision}) is newer than this version of Socratic Bench, "
            f"which knows {known}; upgrade Socratic Bench, or use another store"
        ) from None
