"""The spending of experiments, and limits that runners share."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
REWRITTEN = {"fillfactor": 50}
HAS_RESERVATION = sa.text("reserved > 0")


def upgrade() -> None:
    op.create_table(
        "spending",
        sa.Column("experiment_id", KEY, primary_key=True),
        sa.Column("budget", sa.BigInteger),
        sa.Column("committed", sa.BigInteger, nullable=False),
        sa.Column("exhausted", sa.Boolean, nullable=False),
        postgresql_with=REWRITTEN,
    )
    # Earlier versions counted no costs and had no budgets.
    op.execute(
        "INSERT INTO spending (experiment_id, budget, committed, exhausted) "
        "SELECT experiment_id, NULL, 0, FALSE FROM experiments"
    )
    op.add_column(
        "calls", sa.Column("reserved", sa.BigInteger, nullable=False, server_default=sa.text("0"))
    )
    op.create_index(
        "reservations",
        "calls",
        ["experiment_id", "leased_until"],
        postgresql_where=HAS_RESERVATION,
        sqlite_where=HAS_RESERVATION,
    )
    op.create_table(
        "limits",
        sa.Column("scope", KEY, primary_key=True),
        sa.Column("total", sa.BigInteger, nullable=False),
        postgresql_with=REWRITTEN,
    )
    op.create_table(
        "shares",
        sa.Column("scope", KEY, primary_key=True),
        sa.Column("owner", KEY, primary_key=True),
        sa.Column("parts", sa.BigInteger, nullable=False),
        sa.Column("wants", sa.BigInteger, nullable=False),
        sa.Column("held_until", sa.BigInteger, nullable=False),
        postgresql_with=REWRITTEN,
    )
