"""The failing models that each owner of leases reports."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("owners", sa.Column("troubles", sa.Text))
