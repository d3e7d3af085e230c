"""The first tables: experiments, responses, calls, scores, failures, cells."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "experiments",
        sa.Column("experiment_id", KEY, primary_key=True),
        sa.Column("manifest", sa.Text, nullable=False),
        sa.Column("occasion", sa.Text),
        sa.Column("profile", KEY, nullable=False),
        sa.Column("planned_runs", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("completed_at", sa.BigInteger),
        sa.Column("revision", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "responses",
        sa.Column("run_id", KEY, primary_key=True),
        sa.Column("turn", sa.Integer, primary_key=True),
        sa.Column("record", sa.Text, nullable=False),
        postgresql_with={"toast_tuple_target": 8160},
    )
    op.create_table(
        "calls",
        sa.Column("experiment_id", KEY, primary_key=True),
        sa.Column("run_id", KEY, primary_key=True),
        sa.Column("turn", sa.Integer, primary_key=True),
        sa.Column("calls", sa.Integer, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("leased_until", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "scores",
        sa.Column("experiment_id", KEY, primary_key=True),
        sa.Column("run_id", KEY, primary_key=True),
        sa.Column("turn", sa.Integer, primary_key=True),
        sa.Column("profile", KEY, primary_key=True),
        sa.Column("last_turn", sa.Boolean, nullable=False),
        sa.Column("record", sa.Text, nullable=False),
    )
    op.create_table(
        "failures",
        sa.Column("experiment_id", KEY, primary_key=True),
        sa.Column("run_id", KEY, primary_key=True),
        sa.Column("profile", KEY, primary_key=True),
        sa.Column("counted", sa.Boolean, nullable=False),
        sa.Column("record", sa.Text, nullable=False),
    )
    op.create_table(
        "cells",
        sa.Column("experiment_id", KEY, primary_key=True),
        sa.Column("model_id", KEY, primary_key=True),
        sa.Column("scenario_id", KEY, primary_key=True),
        sa.Column("turn", sa.Integer, primary_key=True),
        sa.Column("profile", KEY, primary_key=True),
        sa.Column("dimension", sa.Text, nullable=False),
        sa.Column("responses", sa.BigInteger, nullable=False),
        sa.Column("runs_ended", sa.BigInteger, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("record", sa.Text, nullable=False),
        postgresql_with={"fillfactor": 50},
    )
