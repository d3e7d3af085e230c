"""Owners that still have to store outcomes of calls whose leases are over."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column(
        "owners", sa.Column("overdue", sa.Boolean, nullable=False, server_default=sa.false())
    )
