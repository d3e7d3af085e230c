"""The formats of exported tables: JSON lines, CSV that Excel reads, and Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from socratic_bench.reporting.export.columns import Column, Record
from socratic_bench.reporting.export.parquet.table_file import ParquetFile
from socratic_bench.reporting.leaderboard.csv_text import spreadsheet_text

BYTE_ORDER_MARK: Final = "\ufeff"
"""The first character of a CSV, by which Excel knows UTF-8."""


class TableFile(Protocol):
    """Turns records into the bytes of a file, a piece at a time."""

    def begin(self) -> bytes:
        """Return the first bytes."""
        ...

    def add(self, records: Sequence[Record]) -> bytes:
        """Take records; returns the bytes that are complete, which may be none."""
        ...

    def pause(self) -> tuple[bytes, bytes]:
        """Return the bytes of all records so far, and a state.

        A file that is made with the state goes on from here.
        """
        ...

    def end(self) -> bytes:
        """Return the last bytes, those of unfinished records included."""
        ...


class JsonLinesFile:
    """One JSON object a line."""

    def __init__(self, _columns: Sequence[Column], _state: bytes = b"") -> None:
        pass

    def begin(self) -> bytes:
        return b""

    def add(self, records: Sequence[Record]) -> bytes:
        return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in records).encode()

    def pause(self) -> tuple[bytes, bytes]:
        return b"", b""

    def end(self) -> bytes:
        return b""


class CsvFile:
    """CSV: a heading, then a row for each record.

    A text that a spreadsheet would execute as a formula has an apostrophe before it.
    """

    def __init__(self, columns: Sequence[Column], _state: bytes = b"") -> None:
        self._names = [column.name for column in columns]

    def begin(self) -> bytes:
        return (BYTE_ORDER_MARK + _rows([self._names])).encode()

    def add(self, records: Sequence[Record]) -> bytes:
        return _rows(map(spreadsheet_text, each.values()) for each in records).encode()

    def pause(self) -> tuple[bytes, bytes]:
        return b"", b""

    def end(self) -> bytes:
        return b""


class Format(NamedTuple):
    """A format."""

    file: Callable[[Sequence[Column], bytes], TableFile]
    """Makes a file of these columns, which goes on from a state; an empty one begins anew."""

    media_type: str


FORMATS: Final[Mapping[str, Format]] = {
    "jsonl": Format(JsonLinesFile, "application/x-ndjson"),
    "csv": Format(CsvFile, "text/csv; charset=utf-8"),
    "parquet": Format(ParquetFile, "application/vnd.apache.parquet"),
}


def _rows(rows: Iterable[Iterable[object]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()
