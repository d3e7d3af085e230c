"""Reads files of texts: plain lines, JSON Lines, JSON documents, or CSV with a header."""

from __future__ import annotations

import codecs
import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import IO, Any, Final, NoReturn

from socratic_bench.errors import InvalidInput
from socratic_bench.planning.config_file.tables import CsvTable, separator_of
from socratic_cli.reading.conversations import is_dialogue, spoken_in
from socratic_cli.reading.foreign_files import (
    refuse_binary,
    refuse_foreign_record,
    refuse_foreign_text,
)
from socratic_cli.reading.messages import SPEAKER_FIELDS

MOST_BYTES: Final = 64 * 1024 * 1024
"""The greatest size of JSON that is read as a whole."""

START_BYTES: Final = 64 * 1024
"""The first bytes of a file, which tell what it is."""

_LIKE_JSON: Final = re.compile(r"\s*(?:\{|\[\s*(?:[\[{\"\]]|$))")
_BLANK: Final = re.compile(r"\s*")


class NoDocuments(ValueError):
    """The text is no JSON; the message says why."""


def refuse_constant(name: str) -> NoReturn:
    """Raise ValueError for NaN and the infinities, which JSON does not have."""
    raise ValueError(f"{name} is not a number in JSON")


_DECODER: Final = json.JSONDecoder(parse_constant=refuse_constant)


def looks_like_json(text: str) -> bool:
    """Whether a text begins as an object does, or as an array of objects, arrays or strings."""
    return _LIKE_JSON.match(text) is not None


def records_of(text: str) -> list[Any]:
    """Return the records of a JSON text: the items of an array, or each of several documents.

    An array of a chat's messages beside other documents is a record with `messages`. Raises
    NoDocuments.
    """
    documents = []
    at = _end_of_blank(text, 0)
    try:
        while at < len(text):
            document, at = _DECODER.raw_decode(text, at)
            documents.append(document)
            at = _end_of_blank(text, at)
    except RecursionError:
        raise NoDocuments("nested too deeply") from None
    except ValueError as error:
        raise NoDocuments(str(error)) from None
    if len(documents) == 1:
        return documents[0] if isinstance(documents[0], list) else documents
    return [_as_record(document) for document in documents]


def _as_record(document: object) -> object:
    if isinstance(document, list) and all(_is_message(each) for each in document):
        return {"messages": document}
    return document


def _is_message(value: object) -> bool:
    return isinstance(value, Mapping) and not SPEAKER_FIELDS.isdisjoint(value)


def _end_of_blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def joined(name: str, lines: Iterable[bytes]) -> tuple[list[bytes], Iterable[bytes]]:
    """Return the lines of a document, and those that follow if it is larger than MOST_BYTES."""
    kept: list[bytes] = []
    size = 0
    remaining = iter(lines)
    for line in remaining:
        kept.append(line)
        size += len(line)
        if size > MOST_BYTES:
            return kept, remaining
    return kept, ()


def bounded_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file; one of more than MOST_BYTES comes in pieces."""
    return iter(lambda: file.readline(MOST_BYTES), b"")


def too_large(name: str) -> InvalidInput:
    """Return the error for a document of more than MOST_BYTES."""
    most = MOST_BYTES // 2**20
    return InvalidInput(f"{name}: a JSON array of more than {most} MB; give one object per line")


TEXT_KEYS: Final = ("text", "response", "output", "content")
"""The keys of the tutor's response, in the order of preference."""

MOST_OF_A_START: Final = 1024 * 1024
"""Bytes that decide what a plain text is."""

NAMED_KEYS: Final = 8
"""The most keys that a message names."""

MOST_OF_A_KEY: Final = 40
"""The most characters of a key in a message."""

_NUMBERS: Final = ("output_tokens",)
"""Columns of CSV that hold numbers."""

_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF_32: Final = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_SEPARATORS: Final = ",\t;"
_COLUMN: Final = re.compile(r"[\"']?[A-Za-z_][\w .-]{0,39}[\"']?")


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
    """Yield every response of a file while reading: plain lines, JSON Lines and CSV are not held.

    Raises InvalidInput for an unreadable file, and for one that is no list of answers.
    """
    head, lines = _opened(name, iter(lines))
    first = head.decode(errors="replace")
    if whole:
        yield from _whole(name, lines)
    elif (separator := _separator(name, first)) is not None:
        yield from _rows(name, lines, separator)
    elif first.lstrip().startswith(("{", "[")):
        yield from _json(name, head, lines)
    else:
        yield from _texts(name, lines)


def _opened(name: str, remaining: Iterator[bytes]) -> tuple[bytes, Iterable[bytes]]:
    """Return the first line that is not blank, and all lines, each with its own end.

    Text in UTF-16 becomes UTF-8.
    """
    first = next(remaining, b"")
    if first.startswith(_UTF_16) and not first.startswith(_UTF_32):
        remaining = iter(_from_utf_16(name, b"".join(chain([first], remaining))))
        first = next(remaining, b"")
    refuse_binary(name, first)
    split = _split(chain([first.removeprefix(codecs.BOM_UTF8)], remaining))
    blank: list[bytes] = []
    for line in split:
        if line and not line.isspace():
            refuse_binary(name, line)
            return line, chain(blank, [line], split)
        blank.append(line)
    return b"", filter(None, blank)


def _from_utf_16(name: str, content: bytes) -> list[bytes]:
    try:
        return content.decode("utf-16").encode().splitlines(keepends=True)
    except UnicodeError:
        raise InvalidInput(f"{name} is no text in UTF-16: save it as UTF-8") from None


def _split(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines that end at a line feed, a carriage return, or both."""
    for line in lines:
        if b"\r" in line:
            yield from line.splitlines(keepends=True)
        else:
            yield line


def _whole(name: str, lines: Iterable[bytes]) -> Iterator[Entry]:
    content = b"".join(lines)
    refuse_binary(name, content)
    yield from _plain(name, [content])


def _separator(name: str, first: str) -> str | None:
    """Return what parts the cells of a table; None if the file is none.

    The name tells, or a heading that names a text column and others.
    """
    ending = name.lower()[-4:]
    if ending in {".csv", ".tsv"}:
        return separator_of(name, first)
    for separator in _SEPARATORS:
        columns = first.strip().split(separator)
        if len(columns) > 1 and all(map(_COLUMN.fullmatch, columns)):
            return separator if {each.strip("\"'") for each in columns} & set(TEXT_KEYS) else None
    return None


def _json(name: str, head: bytes, lines: Iterable[bytes]) -> Iterator[Entry]:
    """Read JSON Lines if the first line is an object, else whole documents.

    A text that only begins like an array is a text.
    """
    try:
        first = json.loads(head)
    except (ValueError, RecursionError):
        first = None
    if isinstance(first, dict):
        refuse_foreign_record(name, first)
        yield from _json_lines(name, lines)
        return
    kept, more = joined(name, lines)
    text = b"".join(kept).decode(errors="replace")
    is_json = name.lower().endswith(".json") or looks_like_json(text)
    if not is_json:
        yield from _texts(name, chain(kept, more))
        return
    if more:
        raise too_large(name)
    try:
        records = records_of(text)
    except NoDocuments as error:
        if any(map(_is_object, kept)):
            yield from _json_lines(name, kept)
            return
        raise InvalidInput(f"{name}: not valid JSON: {error}") from None
    yield from _records(name, records)


def _records(name: str, records: list[Any]) -> Iterator[Entry]:
    for record in records[:1]:
        refuse_foreign_record(name, record)
    if all(isinstance(record, str) for record in records):
        for number, text in enumerate(records, start=1):
            yield Entry(number, f"{name} item {number}", text)
        return
    for number, record in enumerate(records, start=1):
        yield record_entry(number, f"{name} item {number}", record)


def _is_object(line: bytes) -> bool:
    """Whether a line is a JSON object that is not empty."""
    if not line.lstrip().startswith(b"{"):
        return False
    try:
        return bool(json.loads(line))
    except (ValueError, RecursionError):
        return False


def _json_lines(name: str, lines: Iterable[bytes]) -> Iterator[Entry]:
    for entry in _plain(name, lines):
        if not isinstance(entry.content, str):
            yield entry
        elif entry.content.strip():
            yield _parsed(entry.number, entry.place, entry.content)


def _texts(name: str, lines: Iterable[bytes]) -> Iterator[Entry]:
    """Read plain text: an answer a line, or a dialogue whose lines name their speakers."""
    remaining = iter(lines)
    kept: list[bytes] = []
    size = 0
    for line in remaining:
        kept.append(line)
        size += len(line)
        if size > MOST_OF_A_START:
            break
    start = b"".join(kept)
    refuse_binary(name, start)
    text = start.decode(errors="replace")
    refuse_foreign_text(name, text)
    if is_dialogue(text):
        yield from _dialogue(name, chain(kept, remaining))
    else:
        yield from _plain(name, chain(kept, remaining))


def _dialogue(name: str, lines: Iterable[bytes]) -> Iterator[Entry]:
    for spoken in spoken_in(name, list(_decoded(name, lines))):
        record = {"speaker": spoken.side.value, "text": spoken.text}
        yield Entry(spoken.number, f"{name} line {spoken.number}", record)


def _plain(name: str, lines: Iterable[bytes]) -> Iterator[Entry]:
    for number, raw in enumerate(lines, start=1):
        place = f"{name} line {number}"
        try:
            text = raw.decode().rstrip("\r\n")
        except UnicodeDecodeError as error:
            yield Entry(number, place, None, f"not UTF-8 text: {error.reason}")
            continue
        if "\0" in text:
            yield Entry(number, place, None, "binary, not text")
        else:
            yield Entry(number, place, text)


def _parsed(number: int, place: str, line: str) -> Entry:
    try:
        record = json.loads(line, parse_constant=refuse_constant)
    except json.JSONDecodeError as error:
        problem = f"not valid JSON: {error.msg} at column {error.colno}"
        return Entry(number, place, None, problem)
    except RecursionError:
        return Entry(number, place, None, "not valid JSON: nested too deeply")
    except ValueError as error:
        return Entry(number, place, None, str(error))
    return record_entry(number, place, record)


_KEPT: Final = frozenset({*TEXT_KEYS, "content", "error"})
"""Fields whose null says more than their absence."""


def record_entry(number: int, place: str, record: object) -> Entry:
    """Return a record of a JSON document as an entry, without fields that say nothing."""
    if isinstance(record, dict):
        # pandas writes an absent value as null, and makes fractions of whole numbers beside one.
        record = {key: value for key, value in record.items() if value is not None or key in _KEPT}
        name = record.get("id")
        if isinstance(name, float) and name.is_integer():
            record["id"] = int(name)
        return Entry(number, place, record)
    return Entry(number, place, None, "must be a JSON object with `text`")


def _rows(name: str, lines: Iterable[bytes], separator: str) -> Iterator[Entry]:
    """Read the rows of a table, whose header names the columns."""
    try:
        table = CsvTable(_decoded(name, lines), separator)
        columns = table.columns
        if not set(columns) & set(TEXT_KEYS):
            columns = [column.lower() for column in columns]  # as spreadsheets begin a heading
        if not set(columns) & set(TEXT_KEYS):
            refuse_foreign_record(name, dict.fromkeys(table.columns, ""))
            raise InvalidInput(
                f"{name}: needs a column `text`, `response` or `output`; {keys_named(columns)}"
            )
        table.columns = columns
        for number, row in enumerate(table.rows(), start=1):
            if row.problem is not None:
                raise InvalidInput(f"{name} line {row.line}: {row.problem}")
            if number == 1:
                refuse_foreign_record(name, row.cells)
            yield _row(number, f"{name} row {number}", row.cells)
    except csv.Error as error:
        raise InvalidInput(f"{name} line 1: not valid CSV: {error}") from None


def _row(number: int, place: str, row: Mapping[str, str]) -> Entry:
    record: dict[str, Any] = {key: value for key, value in row.items() if value}
    record |= {key: row[key] for key in TEXT_KEYS if key in row}
    record |= {key: row[key] for key in SPEAKER_FIELDS & row.keys()}
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
            text = raw.decode()
        except UnicodeDecodeError as error:
            raise InvalidInput(
                f"{name} line {number}: not UTF-8 text: {error.reason}; Excel writes it as "
                "*CSV UTF-8*"
            ) from None
        if "\0" in text:
            raise InvalidInput(f"{name} line {number}: binary, not text")
        yield text


def keys_named(keys: Iterable[str]) -> str:
    """Return the words for a record's keys, if it lacks the needed ones."""
    found = [json.dumps(key[:MOST_OF_A_KEY]) for key in keys]
    more = ", …" if len(found) > NAMED_KEYS else ""
    return f"it has {', '.join(found[:NAMED_KEYS]) or 'none at all'}{more}"
