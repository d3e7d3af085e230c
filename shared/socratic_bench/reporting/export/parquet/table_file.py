"""A table as a Parquet file. A row group is in memory at a time."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any, Final

from socratic_bench.reporting.export.columns import Column, Record
from socratic_bench.reporting.export.parquet.row_group import row_group, schema
from socratic_bench.reporting.export.parquet.thrift import (
    encoded_struct,
    i32,
    i64,
    listed,
    struct,
    text,
)
from socratic_bench.version import __version__

MAGIC: Final = b"PAR1"
LARGEST_GROUP: Final = 16_000_000
"""Characters of text in a row group, about."""

MOST_ROWS: Final = 50_000
"""Rows of a row group."""


class ParquetFile:
    """Writes records of some columns as a Parquet file."""

    def __init__(self, columns: Sequence[Column], state: bytes = b"") -> None:
        """`state` is that of a paused file; an empty one begins a file."""
        self._columns = columns
        self._position = 0
        self._rows = 0
        self._groups: list[bytes] = []
        if state:
            kept = json.loads(state)
            self._position, self._rows = kept["position"], kept["rows"]
            self._groups = [b64decode(group) for group in kept["groups"]]
        self._values: list[list[Any]] = [[] for _ in columns]
        self._size = 0

    def begin(self) -> bytes:
        self._position = len(MAGIC)
        return MAGIC

    def add(self, records: Sequence[Record]) -> bytes:
        complete = bytearray()
        for record in records:
            for column, value in zip(self._values, record.values(), strict=True):
                column.append(value)
                if isinstance(value, str):
                    self._size += len(value)
            if self._size >= LARGEST_GROUP or len(self._values[0]) >= MOST_ROWS:
                complete += self._group()
        return bytes(complete)

    def pause(self) -> tuple[bytes, bytes]:
        complete = self._group()
        state = {
            "position": self._position,
            "rows": self._rows,
            "groups": [b64encode(group).decode() for group in self._groups],
        }
        return complete, json.dumps(state).encode()

    def end(self) -> bytes:
        complete = self._group()
        footer = struct(
            {
                1: i32(2),
                2: schema(self._columns),
                3: i64(self._rows),
                4: listed([encoded_struct(group) for group in self._groups]),
                6: text(f"socratic-bench version {__version__} (build unknown)"),
            }
        ).encoded
        return complete + footer + len(footer).to_bytes(4, "little") + MAGIC

    def _group(self) -> bytes:
        """Return the rows in memory as a row group, and forget them."""
        rows = len(self._values[0])
        if not rows:
            return b""
        content, metadata = row_group(self._columns, self._values, self._position)
        self._position += len(content)
        self._rows += rows
        self._groups.append(metadata)
        self._values, self._size = [[] for _ in self._columns], 0
        return content
