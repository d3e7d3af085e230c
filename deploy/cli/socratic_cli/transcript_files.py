"""Reads files of texts: plain lines, JSON Lines, one JSON array, or CSV with a header."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from socratic_bench.errors import InvalidInput

TEXT_KEYS: Final = ("text", "response", "output")
"""The keys of the tutor's response, in the order of preference."""

MOST_BYTES: Final = 64 * 1024 * 1024
"""The greatest size of a JSON array, which is read as a whole."""

NAMED_KEYS: Final = 8
"""The most keys that a message names."""

MOST_OF_A_KEY: Final = 40
"""The most characters of a key in a message."""

_NUMBERS: Final = ("output_tokens",)
"""Columns of CSV that hold numbers."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One response of a file, as read."""

    number: int
    """The number of its line, item or row, from 1."""

    place: str
    """Its position in the file, for a message."""

    content: str | Mapping[str, Any] | None
    """A plain text or a record; None if it is unreadable."""

    problem: str | None = None
    """The mistake in it; None if it can be scored."""


def entries(lines: Iterable[bytes], *, name: str, whole: bool) -> Iterator[Entry]:
    """Yield every response of a file while reading: only a JSON array is held in memory.

    Raises InvalidInput for an unreadable file.
    """
    remaining = iter(lines)
    first = next(remaining, b"").removeprefix(b"\xef\xbb\xbf")
    lines = chain([first], remaining) if first else ()
    if whole:
        yield from _plain(name, [b"".join(lines)])
    elif name.lower().endswith(".csv"):
        yield from _rows(name, lines)
    elif first.lstrip().startswith(b"["):
        yield from _items(name, lines)
    else:
        yield from _lines(name, lines)


def _lines(name: str, lines: Iterable[bytes]) -> Iterator[Entry]:
    """Read plain text or JSON Lines: the first line that is not blank decides."""
    reads_json: bool | None = None
    for number, raw in enumerate(lines, start=1):
        [entry] = _plain(name, [raw], number)
        if not isinstance(entry.content, str):
            yield entry
            continue
        line = entry.content
        if reads_json is None and line.strip():
            reads_json = line.lstrip().startswith("{")
        if not reads_json:
            yield entry
        elif line.strip():
            yield _parsed(number, entry.place, line)


def _plain(name: str, lines: Iterable[bytes], first: int = 1) -> Iterator[Entry]:
    for number, raw in enumerate(lines, start=first):
        place = f"{name} line {number}"
        try:
            yield Entry(number, place, raw.decode().rstrip("\r\n"))
        except UnicodeDecodeError as error:
            yield Entry(number, place, None, f"not UTF-8 text: {error.reason}")


def _parsed(number: int, place: str, line: str) -> Entry:
    try:
        record = json.loads(line, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        problem = f"not valid JSON: {error.msg} at column {error.colno}"
        return Entry(number, place, None, problem)
    except RecursionError:
        return Entry(number, place, None, "not valid JSON: nested too deeply")
    except ValueError as error:
        return Entry(number, place, None, str(error))
    return _record(number, place, record)


def _record(number: int, place: str, record: object) -> Entry:
    if isinstance(record, dict):
        return Entry(number, place, record)
    return Entry(number, place, None, "must be a JSON object with `text`")


def _items(name: str, lines: Iterable[bytes]) -> Iterator[Entry]:
    """Read the items of a JSON array, or the lines of a text that only begins like one."""
    kept: list[bytes] = []
    size = 0
    for line in lines:
        kept.append(line)
        size += len(line)
        if size > MOST_BYTES:
            most = MOST_BYTES // 2**20
            raise InvalidInput(
                f"{name}: a JSON array of more than {most} MB; give one object per line"
            )
    try:
        array = json.loads(b"".join(kept), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        if not name.lower().endswith(".json"):
            yield from _lines(name, kept)
            return
        wrong = "nested too deeply" if isinstance(error, RecursionError) else error
        raise InvalidInput(f"{name}: not valid JSON: {wrong}") from None
    for number, record in enumerate(array, start=1):
        yield _record(number, f"{name} item {number}", record)


def _rows(name: str, lines: Iterable[bytes]) -> Iterator[Entry]:
    """Read the rows of CSV, whose header names the columns."""
    rows = csv.DictReader(_decoded(name, lines), strict=True)
    try:
        columns = [column.strip() for column in rows.fieldnames or ()]
        if not set(columns) & set(TEXT_KEYS):
            raise InvalidInput(
                f"{name}: needs a column `text`, `response` or `output`; {keys_named(columns)}"
            )
        rows.fieldnames = columns
        for number, row in enumerate(rows, start=1):
            yield _row(number, f"{name} row {number}", row)
    except csv.Error as error:
        raise InvalidInput(f"{name} line {rows.reader.line_num}: not valid CSV: {error}") from None


def _row(number: int, place: str, row: Mapping[Any, Any]) -> Entry:
    record = {key: value for key, value in row.items() if key and value}
    record |= {key: row[key] or "" for key in TEXT_KEYS if key in row}
    for key in _NUMBERS:
        if key in record:
            try:
                record[key] = float(record[key])
            except ValueError:
                problem = f"`{key}` must be a number, not {record[key]!r}"
                return Entry(number, place, record, problem)
    return Entry(number, place, record)


def _decoded(name: str, lines: Iterable[bytes]) -> Iterator[str]:
    for number, raw in enumerate(lines, start=1):
        try:
            yield raw.decode()
        except UnicodeDecodeError as error:
            raise InvalidInput(f"{name} line {number}: not UTF-8 text: {error.reason}") from None


def keys_named(keys: Iterable[str]) -> str:
    """Return the words for a record's keys, if it lacks the needed ones."""
    found = [json.dumps(key[:MOST_OF_A_KEY]) for key in keys]
    more = ", …" if len(found) > NAMED_KEYS else ""
    return f"it has {', '.join(found[:NAMED_KEYS]) or 'none at all'}{more}"


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number in JSON")
