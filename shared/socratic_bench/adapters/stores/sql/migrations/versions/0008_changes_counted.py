"""How often cells and experiments have changed, counted by triggers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

REWRITTEN = {"fillfactor": 50}

SQLITE = """
CREATE TRIGGER {name} AFTER {event} {condition}
BEGIN
    INSERT INTO changes VALUES (0, 1) ON CONFLICT (shard) DO UPDATE SET changes = changes + 1;
END
"""
FUNCTION = """
CREATE FUNCTION count_change() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT -- pg_restore loads rows without a search path
AS $$
BEGIN
    INSERT INTO changes VALUES (mod(pg_backend_pid(), 64), 1)
    ON CONFLICT (shard) DO UPDATE SET changes = changes.changes + 1;
    RETURN NULL;
END $$
"""
POSTGRESQL = """
CREATE TRIGGER {name} AFTER {event} FOR EACH {each} {condition} EXECUTE FUNCTION count_change()
"""


def upgrade() -> None:
    op.create_table(
        "changes",
        sa.Column("shard", sa.Integer, primary_key=True),
        sa.Column("changes", sa.BigInteger, nullable=False),
        postgresql_with=REWRITTEN,
    )
    if op.get_bind().dialect.name == "sqlite":
        _count_in_sqlite()
    else:
        _count_in_postgresql()


def _count_in_sqlite() -> None:
    for name, event, condition in (
        ("cell_added", "INSERT ON cells", "WHEN NEW.responses > 0"),
        ("cell_changed", "UPDATE OF record ON cells", ""),
        ("experiment_added", "INSERT ON experiments", ""),
        (
            "experiment_changed",
            "UPDATE OF revision ON experiments",
            "WHEN NEW.revision <> OLD.revision",
        ),
    ):
        op.execute(SQLITE.format(name=name, event=event, condition=condition))


def _count_in_postgresql() -> None:
    op.execute(FUNCTION)
    for name, event, each, condition in (
        ("experiment_added", "INSERT ON experiments", "ROW", ""),
        (
            "experiment_changed",
            "UPDATE OF revision ON experiments",
            "ROW",
            "WHEN (NEW.revision <> OLD.revision)",
        ),
        # Fires once for each statement that writes cells, also where it inserts them. It is the
        # last one: a deletion locks experiments before cells, too.
        ("cells_changed", "UPDATE OF record ON cells", "STATEMENT", ""),
    ):
        op.execute(POSTGRESQL.format(name=name, event=event, each=each, condition=condition))
