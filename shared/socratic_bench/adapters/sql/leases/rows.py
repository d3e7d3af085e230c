"""What owners of leases say of failing models, as it stands in a row."""

from __future__ import annotations

from collections.abc import Collection

from pydantic import TypeAdapter

from socratic_bench.adapters.sql.records import Records
from socratic_bench.domain.trouble import Trouble

_TROUBLES = TypeAdapter(list[Trouble])

TROUBLES_OF_OWNERS = Records("owners", 1, lambda row: _TROUBLES.validate_json(row[1]))
"""From (owner, troubles)."""


def record_of_troubles(troubles: Collection[Trouble]) -> str | None:
    """What stands in the column `troubles`; None for none."""
    return _TROUBLES.dump_json(list(troubles)).decode() if troubles else None
