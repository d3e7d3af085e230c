"""The pauses of models whose providers pushed back, for all runners."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
REWRITTEN = {"fillfactor": 50}


def upgrade() -> None:
    op.create_table(
        "pauses",
        sa.Column("scope", KEY, primary_key=True),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("in_a_row", sa.BigInteger, nullable=False),
        sa.Column("paused_until", sa.BigInteger, nullable=False),
        sa.Column("next_call", sa.BigInteger, nullable=False),
        sa.Column("gap", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        postgresql_with=REWRITTEN,
    )
