"""A row group: its columns as Parquet lays them out, each in one compressed page.

Values are encoded plainly and compressed by gzip, which every reader knows and Python has. A level
before the values says which of them are null.

https://github.com/apache/parquet-format
"""

from __future__ import annotations

import gzip
import struct as binary
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, Final, NamedTuple

from socratic_bench.reporting.export.columns import Column, Kind
from socratic_bench.reporting.export.parquet.thrift import (
    TRUE,
    Value,
    i32,
    i64,
    listed,
    struct,
    text,
    varint,
)

_OPTIONAL: Final = 1
_DATA_PAGE: Final = 0
_PLAIN: Final = 0
_RLE: Final = 3
_GZIP: Final = 2
_COMPRESSION: Final = 4
"""Of 9: a higher level takes twice as long for a few per cent."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class _Type(NamedTuple):
    """How the values of a kind are stored."""

    physical: int
    encode: Callable[[Sequence[Any]], bytes]
    annotation: Mapping[int, Value]
    """Further fields of the column's element in the schema: its logical type, new and old."""


def _texts(values: Sequence[str]) -> bytes:
    encoded = [value.encode() for value in values]
    return b"".join(part for each in encoded for part in (len(each).to_bytes(4, "little"), each))


def _integers(values: Sequence[int]) -> bytes:
    return binary.pack(f"<{len(values)}q", *values)


def _numbers(values: Sequence[float]) -> bytes:
    return binary.pack(f"<{len(values)}d", *values)


def _moments(values: Sequence[str]) -> bytes:
    moments = [datetime.fromisoformat(value) for value in values]
    return _integers([(moment - _EPOCH) // _MICROSECOND for moment in moments])


_MICROSECONDS: Final = struct({2: struct({})})
_TYPES: Final[Mapping[Kind, _Type]] = {
    Kind.TEXT: _Type(6, _texts, {6: i32(0), 10: struct({1: struct({})})}),
    Kind.INTEGER: _Type(2, _integers, {}),
    Kind.NUMBER: _Type(5, _numbers, {}),
    Kind.MOMENT: _Type(
        2, _moments, {6: i32(10), 10: struct({8: struct({1: TRUE, 2: _MICROSECONDS})})}
    ),
}


def schema(columns: Sequence[Column]) -> Value:
    """Return the schema of a file: a root, and every column beneath it."""
    root = struct({4: text("schema"), 5: i32(len(columns))})
    return listed([root, *map(_element, columns)])


def _element(column: Column) -> Value:
    stored = _TYPES[column.kind]
    return struct(
        {
            1: i32(stored.physical),
            3: i32(_OPTIONAL),
            4: text(column.name),
            **stored.annotation,
        }
    )


def row_group(
    columns: Sequence[Column], values: Sequence[Sequence[Any]], offset: int
) -> tuple[bytes, bytes]:
    """Return the bytes of a row group at `offset` of its file, and its encoded metadata.

    `values` has a list for each column, all of one length.
    """
    content, chunks, plain = bytearray(), [], 0
    for column, of_column in zip(columns, values, strict=True):
        at = offset + len(content)
        page, uncompressed = _page(_TYPES[column.kind], of_column)
        content += page
        plain += uncompressed
        metadata = {
            1: i32(_TYPES[column.kind].physical),
            2: listed([i32(_PLAIN), i32(_RLE)]),
            3: listed([text(column.name)]),
            4: i32(_GZIP),
            5: i64(len(of_column)),
            6: i64(uncompressed),
            7: i64(len(page)),
            9: i64(at),
        }
        chunks.append(struct({2: i64(at), 3: struct(metadata)}))
    group = {
        1: listed(chunks),
        2: i64(plain),
        3: i64(len(values[0])),
        5: i64(offset),
        6: i64(len(content)),
    }
    return bytes(content), struct(group).encoded


def _page(stored: _Type, values: Sequence[Any]) -> tuple[bytes, int]:
    """Return the page of a column with its header, and its size without compression."""
    levels = _levels(values)
    present = stored.encode([value for value in values if value is not None])
    plain = len(levels).to_bytes(4, "little") + levels + present
    compressed = gzip.compress(plain, _COMPRESSION, mtime=0)
    page = {1: i32(len(values)), 2: i32(_PLAIN), 3: i32(_RLE), 4: i32(_RLE)}
    header = struct(
        {1: i32(_DATA_PAGE), 2: i32(len(plain)), 3: i32(len(compressed)), 5: struct(page)}
    ).encoded
    return header + compressed, len(header) + len(plain)


def _levels(values: Sequence[Any]) -> bytes:
    """Return which values are there, as runs of equal levels: 1 for a value, 0 for a null."""
    runs = groupby(value is not None for value in values)
    return b"".join(
        varint(sum(1 for _ in same) << 1) + bytes([is_there]) for is_there, same in runs
    )
