"""The formats of exported tables: JSON lines, CSV that Excel reads, and Parquet.

A table is written a piece at a time, so that the memory does not grow with it.
"""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from socratic_bench.plugins import require_package
from socratic_bench.results.export.records import ExportColumn, Record
from socratic_bench.results.export.tables import Table
from socratic_bench.results.leaderboard.text_formats import spreadsheet_text

PARQUET: Final = "parquet"
BYTE_ORDER_MARK: Final = "\ufeff"
"""The first character of a CSV, by which Excel knows UTF-8."""


class TableFile(Protocol):
    """Turns records into the bytes of a file, a piece at a time."""

    def begin(self) -> bytes:
        """Return the first bytes."""
        return b""

    def add(self, records: Sequence[Record]) -> bytes:
        """Take records; returns the bytes that are complete, which may be none."""
        ...

    def end(self) -> bytes:
        """Return the last bytes, those of unfinished records included."""
        return b""


class JsonLinesFile(TableFile):
    """One JSON object a line."""

    def __init__(self, _columns: Sequence[ExportColumn]) -> None:
        pass

    def add(self, records: Sequence[Record]) -> bytes:
        return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in records).encode()


class CsvFile(TableFile):
    """CSV: a heading, then a row for each record.

    A text that a spreadsheet would execute as a formula has an apostrophe before it.
    """

    def __init__(self, columns: Sequence[ExportColumn]) -> None:
        self._names = [column.name for column in columns]

    def begin(self) -> bytes:
        return (BYTE_ORDER_MARK + _rows([self._names])).encode()

    def add(self, records: Sequence[Record]) -> bytes:
        return _rows(map(spreadsheet_text, each.values()) for each in records).encode()


def _rows(rows: Iterable[Iterable[object]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def _parquet_file(columns: Sequence[ExportColumn]) -> TableFile:
    check_format(PARQUET)
    from socratic_bench.results.export.parquet import (  # noqa: PLC0415 - only when asked for
        ParquetFile,
    )

    return ParquetFile(columns)


class Format(NamedTuple):
    """A format."""

    file: Callable[[Sequence[ExportColumn]], TableFile]
    """Makes a file of these columns. Raises MissingExtra."""

    media_type: str


FORMATS: Final[Mapping[str, Format]] = {
    "jsonl": Format(JsonLinesFile, "application/x-ndjson"),
    "csv": Format(CsvFile, "text/csv; charset=utf-8"),
    PARQUET: Format(_parquet_file, "application/vnd.apache.parquet"),
}


def check_format(output: str) -> None:
    """Raise MissingExtra if this process cannot write one of FORMATS."""
    if output == PARQUET:
        require_package(
            "pyarrow", needed_by="the format parquet", extra="socratic-ai-bench[parquet]"
        )


@dataclass(slots=True)
class Written:
    """How many records of a table are written."""

    records: int = 0


async def file_pieces(
    table: Table, output: str, written: Written | None = None
) -> AsyncIterator[bytes]:
    """Yield the bytes of a table in one of FORMATS; `written` is kept up to date.

    Raises StoreError and MissingExtra.
    """
    written = written or Written()
    # The first file of Parquet imports its package.
    file = await asyncio.to_thread(FORMATS[output].file, table.columns)
    yield file.begin()
    async for records in table.read():
        if piece := await asyncio.to_thread(file.add, records):
            yield piece
        written.records += len(records)
    yield await asyncio.to_thread(file.end)
