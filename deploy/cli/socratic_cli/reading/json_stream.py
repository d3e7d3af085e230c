"""Reads a JSON document a value at a time: memory holds one value, however large the file."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

from socratic_cli.reading.files import MOST_BYTES, NoDocuments, bounded_lines
from socratic_cli.reading.logged_runs import LogFacts, LoggedRun, LogReader, LogRows, Unread

_PIECE: Final = 256 * 1024
"""Bytes of the first piece of a value; each further piece is twice as large."""

_BLANK: Final = re.compile(r"[ \t\r\n]*")
_DECODER: Final = json.JSONDecoder()


class JsonStream:
    """A JSON text. The caller takes every value that it meets: whole, or member by member.

    All methods raise NoDocuments, which names the place, for a text that is no JSON, and for a
    value of more than MOST_BYTES.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8-sig")(errors="replace").decode
        self._text = ""
        self._at = 0
        self._before = 0
        """Characters that were dropped from the beginning of the text."""

        self._ended = False

    def peek(self) -> str:
        """Return the next character that is not blank; empty at the end."""
        while True:
            match = _BLANK.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._fill(_PIECE)

    def members(self) -> Iterator[str]:
        """Yield the keys of the object that comes; the caller takes each value before the next."""
        self._expect("{")
        while self.peek() != "}":
            key = self.value()
            if not isinstance(key, str):
                raise self._wrong("a key must be a string")
            self._expect(":")
            yield key
            self._separated("}")
        self._expect("}")

    def items(self) -> Iterator[int]:
        """Yield the numbers, from 1, of the items of the array that comes; the caller takes each
        item before the next.
        """
        self._expect("[")
        number = 0
        while self.peek() != "]":
            number += 1
            yield number
            self._separated("]")
        self._expect("]")

    def value(self) -> Any:
        """Return the whole value that comes."""
        self.peek()
        piece = _PIECE
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except RecursionError:
                raise self._wrong("nested too deeply") from None
            except ValueError as error:
                if self._ended:
                    raise self._wrong(str(error).partition(":")[0]) from None
            else:
                # A number may go on in the next piece.
                if end < len(self._text) or self._ended:
                    self._at = end
                    return value
            if len(self._text) - self._at > MOST_BYTES:
                raise self._wrong(f"a value of more than {MOST_BYTES // 2**20} MB, or no JSON")
            self._fill(piece)
            piece *= 2

    def _separated(self, end: str) -> None:
        if self.peek() == ",":
            self._at += 1
        elif self.peek() != end:
            raise self._wrong(f"expected a comma or {end}")

    def _expect(self, mark: str) -> None:
        if self.peek() != mark:
            raise self._wrong(f"expected {mark}")
        self._at += 1

    def _fill(self, size: int) -> None:
        self._before += self._at
        read = self._file.read(size)
        self._ended = not read
        self._text = self._text[self._at :] + self._decode(read, final=self._ended)
        self._at = 0

    def _wrong(self, problem: str) -> NoDocuments:
        what = "the text ends too early" if self._is_over() else problem
        return NoDocuments(f"{what}, at character {self._before + self._at + 1:,}")

    def _is_over(self) -> bool:
        return self._ended and self._at >= len(self._text)


def documents(path: Path) -> Iterator[tuple[str, Any] | Unread]:
    """Yield the items of a JSON array, or the documents of a file, with their places.

    Of documents a line each, a broken one costs no other; what breaks off has those before.
    """
    number = 0
    try:
        with path.open("rb") as file:
            if _has_lines(file.readline(MOST_BYTES)):
                file.seek(0)
                yield from _lines(path, file)
                return
            file.seek(0)
            text = JsonStream(file)
            if text.peek() == "[":
                for number in text.items():
                    yield f"{path} item {number}", text.value()
                return
            while text.peek():
                yield f"{path} document {number + 1}", text.value()
                number += 1
    except NoDocuments as error:
        yield Unread(f"{path} after item {number}", str(error))


def _has_lines(first: bytes) -> bool:
    try:
        return isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


def _lines(path: Path, file: IO[bytes]) -> Iterator[tuple[str, Any] | Unread]:
    for number, line in enumerate(bounded_lines(file), start=1):
        place = f"{path} line {number}"
        try:
            if line.strip():
                yield place, json.loads(line.removeprefix(codecs.BOM_UTF8).decode(errors="replace"))
        except ValueError as error:
            yield Unread(place, f"not valid JSON: {error}")
        except RecursionError:
            yield Unread(place, "nested too deeply")


RunsOf: TypeAlias = Callable[[str, Mapping[str, Any]], Iterator[LoggedRun]]
"""Yields the runs of one record at a place. Raises ValueError with what is wrong in it, TypeError
or KeyError for another shape.
"""


def reader(runs_of: RunsOf) -> LogReader:
    """Return a reader of a file whose records are the items of its documents."""

    def read(path: Path, facts: LogFacts) -> LogRows:
        for found in documents(path):
            if isinstance(found, Unread):
                yield found
            else:
                place, record = found
                yield from rows_of(place, record, runs_of)

    return read


def rows_of(place: str, record: object, runs_of: RunsOf) -> LogRows:
    """Yield the runs of one record, or what is wrong in it."""
    if not isinstance(record, Mapping):
        yield Unread(place, "must be a JSON object")
        return
    try:
        yield from runs_of(place, record)
    except KeyError as error:
        yield Unread(place, f"has no {error}")
    except TypeError:
        yield Unread(place, "has another shape than the records of such a file")
    except ValueError as error:
        yield Unread(place, f"cannot be read: {error}")
