"""The address of a table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from socratic_bench.errors import InvalidSettings

FORM: Final = "dynamodb://table, or dynamodb://table?region=eu-central-1&endpoint=http://host:port"

_TABLE = re.compile(r"[A-Za-z0-9_.-]{3,255}")
_OPTIONS: Final = frozenset({"region", "endpoint", "bucket"})


@dataclass(frozen=True, slots=True)
class TableAddress:
    """A table's name and place. Credentials come from where every AWS client looks for them."""

    table: str
    region: str | None = None
    """None: the region of the environment."""

    endpoint: str | None = None
    """The address of an emulator, or of a private endpoint; None: that of the environment, or
    AWS."""

    bucket: str | None = None
    """The bucket of records that are too large for an item; None: they are refused."""

    @property
    def name(self) -> str:
        """The table for people."""
        return f"dynamodb://{self.table}"


def parse(url: str) -> TableAddress:
    """Parse `dynamodb://table?region=…&endpoint=…&bucket=…`.

    Raises InvalidSettings for another form.
    """
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if parts.path.strip("/") or parts.fragment or not _TABLE.fullmatch(parts.netloc):
        raise InvalidSettings(
            f"the store's address names no table: give {FORM}; AWS credentials stand in the "
            "environment, not in the address"
        )
    if unknown := sorted(options.keys() - _OPTIONS):
        raise InvalidSettings(f"the store's address has the unknown option {unknown[0]}: {FORM}")
    return TableAddress(
        parts.netloc, options.get("region"), options.get("endpoint"), options.get("bucket")
    )
