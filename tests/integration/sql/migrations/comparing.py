"""How Alembic compares a database with the schema."""

from __future__ import annotations

from typing import Any

COMPARED: dict[str, Any] = {
    "compare_type": True,
    # Not of the schema: it says who may read it.
    "include_name": lambda name, _kind, _parents: name != "schema_readers",
}
