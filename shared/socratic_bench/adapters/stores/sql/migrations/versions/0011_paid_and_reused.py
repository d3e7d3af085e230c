"""The known costs of an experiment's calls, and those of its adopted answers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

COUNT = """
UPDATE spending SET (paid, reused) = (
    SELECT
        coalesce(sum(CASE WHEN {adopted} IS NULL THEN {cost} END), 0),
        coalesce(sum(CASE WHEN {adopted} IS NOT NULL THEN {cost} END), 0)
    FROM calls AS c JOIN responses AS r ON r.run_id = c.run_id AND r.turn = c.turn
    WHERE c.experiment_id = spending.experiment_id
)
"""


def upgrade() -> None:
    for name in ("paid", "reused"):
        column = sa.Column(name, sa.BigInteger, nullable=False, server_default="0")
        op.add_column("spending", column)
    in_sqlite = op.get_bind().dialect.name == "sqlite"
    field = _in_sqlite if in_sqlite else _in_postgresql
    statement = COUNT.format(
        adopted=field("adopted_from", "text"), cost=field("cost_nanodollars", "bigint")
    )
    op.execute(statement.replace(":", r"\:"))


# PostgreSQL refuses a text with NUL, and SQLite ends it there.
RECORD = r"replace(r.record, '\u0000', '\ufffd')"


def _in_sqlite(name: str, _kind: str) -> str:
    return f"CASE WHEN json_valid({RECORD}) THEN json_extract({RECORD}, '$.{name}') END"


def _in_postgresql(name: str, kind: str) -> str:
    return f"CAST({RECORD}::json ->> '{name}' AS {kind})"
