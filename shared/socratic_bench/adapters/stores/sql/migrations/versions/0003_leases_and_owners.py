"""Leases with ids, their owners, and indexes for the reconciler."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
REWRITTEN = {"fillfactor": 50}
IS_RUNNING = sa.text("completed_at IS NULL")


def upgrade() -> None:
    op.add_column("calls", sa.Column("lease_id", sa.Text, nullable=False, server_default=""))
    op.add_column("calls", sa.Column("lapsed", sa.Text))
    op.add_column("experiments", sa.Column("planned_at", sa.BigInteger))
    op.create_index(
        "running_experiments",
        "experiments",
        ["created_at"],
        postgresql_where=IS_RUNNING,
        sqlite_where=IS_RUNNING,
    )
    op.create_table(
        "owners",
        sa.Column("owner", KEY, primary_key=True),
        sa.Column("beat", sa.BigInteger, nullable=False),
        sa.Column("seen_at", sa.BigInteger, nullable=False),
        sa.Column("gone", sa.Boolean, nullable=False),
        sa.Column("in_hand", sa.Text, nullable=False),
        postgresql_with=REWRITTEN,
    )
    op.create_table(
        "failed_runs",
        sa.Column("run_id", KEY, primary_key=True),
        sa.Column("experiment_id", KEY, nullable=False),
        sa.Column("retry", sa.BigInteger, nullable=False),
        sa.Column("record", sa.Text, nullable=False),
    )
    op.create_index("failed_runs_of_experiments", "failed_runs", ["experiment_id"])
