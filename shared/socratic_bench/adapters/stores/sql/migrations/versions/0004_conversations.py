"""The conversations of experiments, by content, so that a later one finds earlier answers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "conversations",
        sa.Column("conversation_key", KEY, primary_key=True),
        sa.Column("experiment_id", KEY, primary_key=True),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("conversations_of_experiments", "conversations", ["experiment_id"])
