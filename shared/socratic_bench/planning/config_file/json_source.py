"""Reads JSON with the place of every value, and notes every doubled key."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from json import JSONDecodeError, JSONDecoder

from socratic_bench.invalid_values import quoted
from socratic_bench.planning.config_file.source import (
    DEPTH_LIMIT,
    NODES_LIMIT,
    Mistakes,
    Node,
    Place,
    Scalar,
    Unreadable,
    storable,
    whole_number,
)

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WORDS: dict[str, Scalar] = {"true": True, "false": False, "null": None}
_DECODER = JSONDecoder()
_WORD = re.compile(r"true|false|null")


def parse_json(text: str, file: str, mistakes: Mistakes, *, first_line: int = 1) -> Node:
    """Read the document in `text`, which begins in line `first_line` of `file`.

    Raises Unreadable at the first place that is not JSON.
    """
    return _Reader(text, file, mistakes, first_line).document()


# D-190: PyYAML refuses valid JSON; `json.loads` forgets lines.
class _Reader:
    def __init__(self, text: str, file: str, mistakes: Mistakes, first_line: int) -> None:
        self._text = text
        self._file = file
        self._mistakes = mistakes
        self._first_line = first_line
        self._line_ends = [found.start() for found in re.finditer("\n", text)]
        self._position = 0
        self._count = 0

    def document(self) -> Node:
        node = self._value(Place(self._file, self._first_line), 0)
        self._skip_space()
        if self._position < len(self._text):
            raise self._unexpected("the end of the file")
        return node

    def _value(self, place: Place, depth: int) -> Node:
        if depth > DEPTH_LIMIT:
            raise Unreadable(place, f"is nested more than {DEPTH_LIMIT} levels deep")
        self._count += 1
        if self._count > NODES_LIMIT:
            raise Unreadable(place, f"the document holds more than {NODES_LIMIT} values")
        if self._take("{"):
            return Node(place, self._mapping(place, depth))
        if self._take("["):
            return Node(place, self._list(place, depth))
        return Node(place, self._scalar(place))

    def _mapping(self, place: Place, depth: int) -> dict[str, Node]:
        fields: dict[str, Node] = {}
        if self._take("}"):
            return fields
        while True:
            self._skip_space()
            line = self._line()
            if self._peek() != '"':
                raise self._unexpected("a key in double quotes")
            key = self._string(Place(place.file, line, place.path))
            entry = place.child(key, line)
            if not self._take(":"):
                raise self._unexpected("`:`")
            node = self._value(entry, depth + 1)
            if key in fields:
                first = fields[key].place.line
                self._mistakes.add(entry, f"is given twice: the first is in line {first}")
            fields.setdefault(key, node)
            if self._take("}"):
                return fields
            if not self._take(","):
                raise self._unexpected("`,` or `}`")

    def _list(self, place: Place, depth: int) -> list[Node]:
        items: list[Node] = []
        if self._take("]"):
            return items
        while True:
            self._skip_space()
            items.append(self._value(place.child(len(items), self._line()), depth + 1))
            if self._take("]"):
                return items
            if not self._take(","):
                raise self._unexpected("`,` or `]`")

    def _scalar(self, place: Place) -> Scalar:
        if self._peek() == '"':
            return self._string(place)
        if word := _WORD.match(self._text, self._position):
            self._position = word.end()
            return _WORDS[word[0]]
        if number := _NUMBER.match(self._text, self._position):
            self._position = number.end()
            if number[2] is None and number[3] is None:
                return whole_number(number[0], place, self._mistakes)
            return self._fraction(number[0], place)
        raise self._unexpected("a value")

    def _fraction(self, text: str, place: Place) -> float:
        number = float(text)
        if math.isfinite(number):
            return number
        self._mistakes.add(place, f"is too large a number: {quoted(text)}")
        return 0.0

    def _string(self, place: Place) -> str:
        try:
            text, self._position = _DECODER.raw_decode(self._text, self._position)
        except JSONDecodeError as error:
            self._position = min(error.pos, len(self._text))
            problem = error.msg[:1].lower() + error.msg[1:].removesuffix(" at").rstrip(": ")
            raise Unreadable(self._here(), f"not valid JSON: {problem}") from None
        return storable(str(text), place, self._mistakes)

    def _skip_space(self) -> None:
        space = _SPACE.match(self._text, self._position)
        self._position = space.end() if space else self._position

    def _peek(self) -> str:
        return self._text[self._position : self._position + 1]

    def _take(self, sign: str) -> bool:
        self._skip_space()
        if self._peek() != sign:
            return False
        self._position += 1
        return True

    def _line(self) -> int:
        return self._first_line + bisect_left(self._line_ends, self._position)

    def _here(self) -> Place:
        line_start = self._text.rfind("\n", 0, self._position) + 1
        return Place(self._file, self._line(), f"column {self._position - line_start + 1}")

    def _unexpected(self, expected: str) -> Unreadable:
        found = quoted(self._peek()) if self._peek() else "the end of the file"
        return Unreadable(self._here(), f"not valid JSON: expected {expected}, not {found}")
