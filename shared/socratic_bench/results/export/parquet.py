"""A table as a Parquet file, by pyarrow. A row group is in memory at a time."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]
from pyarrow.parquet import ParquetWriter  # type: ignore[import-untyped]

from socratic_bench.results.export.formats import TableFile
from socratic_bench.results.export.records import ExportColumn, Kind, Record

GROUP_BYTES: Final = 16_000_000
"""Bytes of a row group in memory, about."""

_TYPES: Final[Mapping[Kind, Any]] = {
    Kind.TEXT: pa.string(),
    Kind.INTEGER: pa.int64(),
    Kind.NUMBER: pa.float64(),
    Kind.MOMENT: pa.timestamp("us", tz="UTC"),
}


class ParquetFile(TableFile):
    """Writes records of some columns as a Parquet file."""

    def __init__(self, columns: Sequence[ExportColumn], group_bytes: int = GROUP_BYTES) -> None:
        """A row group ends with the records that take it to `group_bytes`."""
        self._columns = columns
        self._schema = pa.schema([(each.name, _TYPES[each.kind]) for each in columns])
        self._group_bytes = group_bytes
        self._sink = io.BytesIO()
        self._writer = ParquetWriter(self._sink, self._schema, compression="zstd")
        self._batches: list[Any] = []
        self._bytes = 0

    def begin(self) -> bytes:
        return self._taken()

    def add(self, records: Sequence[Record]) -> bytes:
        if not records:
            return b""
        arrays = [
            _array(column, [each[column.name] for each in records]) for column in self._columns
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        self._batches.append(batch)
        self._bytes += batch.nbytes
        if self._bytes >= self._group_bytes:
            self._write_group()
        return self._taken()

    def end(self) -> bytes:
        self._write_group()
        self._writer.close()
        return self._taken()

    def _write_group(self) -> None:
        """Write the rows in memory as a row group, and forget them."""
        if self._batches:
            self._writer.write_table(pa.Table.from_batches(self._batches))
        self._batches, self._bytes = [], 0

    def _taken(self) -> bytes:
        """Return the bytes that the writer wrote since this was called last."""
        content = self._sink.getvalue()
        self._sink.seek(0)
        self._sink.truncate()
        return content


def _array(column: ExportColumn, values: Sequence[Any]) -> Any:
    if column.kind is Kind.MOMENT:
        values = [None if each is None else datetime.fromisoformat(each) for each in values]
    return pa.array(values, _TYPES[column.kind])
