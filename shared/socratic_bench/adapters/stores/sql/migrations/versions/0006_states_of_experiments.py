"""The state of an experiment, and whether services carry it out."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("experiments", sa.Column("state", sa.Text, nullable=False, server_default="open"))
    op.add_column(
        "experiments",
        sa.Column("submitted", sa.Boolean, nullable=False, server_default=sa.true()),
    )
