"""The troubles that owners report, as rows."""

from __future__ import annotations

from collections.abc import Collection

from pydantic import TypeAdapter

from socratic_bench.adapters.stores.records import Records
from socratic_bench.domain.trouble import Trouble

_TROUBLES = TypeAdapter(list[Trouble])

TROUBLES_OF_OWNERS = Records("owners", 1, lambda row: _TROUBLES.validate_json(row[1]))
"""Reads (owner, troubles)."""


def record_of_troubles(troubles: Collection[Trouble]) -> str | None:
    """Return the content of the column `troubles`; None without troubles."""
    return _TROUBLES.dump_json(list(troubles)).decode() if troubles else None
