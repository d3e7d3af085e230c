"""Reads files that people write: text, and JSON or YAML as nodes, with the line of every value.

YAML is data only, as in JSON. Its plain values have the types of YAML 1.2 (its core schema):
`no` and `2025-11-03` are text. Tags and merge keys are mistakes; anchors and aliases are allowed,
within bounds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from json import JSONDecodeError, JSONDecoder
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import yaml
from yaml.error import MarkedYAMLError

from socratic_bench.errors import InvalidInput
from socratic_bench.invalid_values import quoted, shown
from socratic_bench.planning.config_file.source import (
    DEPTH_LIMIT,
    NODES_LIMIT,
    SIZE_LIMIT,
    Mistakes,
    Node,
    Place,
    Scalar,
    Unreadable,
    storable,
)

DIGITS_LIMIT = 40
"""Digits of a whole number at most."""

_TOO_DEEP = f"is nested more than {DEPTH_LIMIT} levels deep"
_TOO_MANY = f"the document holds more than {NODES_LIMIT} values"


def read_text(path: Path, largest: int = SIZE_LIMIT) -> str:
    """Read the text of a file of at most `largest` bytes.

    Raises InvalidInput with a sentence that does not name the file.
    """
    try:
        with path.open("rb") as file:
            content = file.read(largest + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidInput("there is no such file") from None
    except IsADirectoryError:
        raise InvalidInput("is a folder, not a file") from None
    except PermissionError:
        raise InvalidInput("may not be read by this user") from None
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}") from None
    if len(content) > largest:
        raise InvalidInput(f"is larger than {_size(largest)}")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = content[error.start]
        problem = f"is not UTF-8 text: line {line} holds the byte 0x{byte:02X}; save it as UTF-8"
        raise InvalidInput(problem) from None


def _size(count: int) -> str:
    return f"{count // 1_000_000} MB" if count >= 1_000_000 else f"{count // 1000} kB"


def parse_document(text: str, file: str, mistakes: Mistakes) -> Node:
    """Read the document in `text` as JSON or YAML, by the file's name or else by the first
    character.

    Raises Unreadable at the place where the reading ends.
    """
    if not text.strip():
        raise Unreadable(Place(file), "is empty")
    if len(text) > SIZE_LIMIT:
        raise Unreadable(Place(file), f"is larger than {_size(SIZE_LIMIT)}")
    suffix = PurePath(file).suffix.lower()
    is_yaml = suffix in {".yaml", ".yml"}
    if suffix == ".json" or (not is_yaml and text.lstrip().startswith("{")):
        return parse_json(text, file, mistakes)
    return parse_yaml(text, file, mistakes)


def parse_json_lines(text: str, file: str, mistakes: Mistakes) -> Iterator[Node]:
    """Read the documents of a JSON Lines file. A broken line is a mistake and hides no other."""
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            yield parse_json(line, file, mistakes, first_line=number)
        except Unreadable as error:
            mistakes.add(error.place, error.problem)


class _Number(str):
    """A number as JSON writes it."""

    __slots__ = ()


_DECODER = JSONDecoder(
    object_pairs_hook=tuple, parse_int=_Number, parse_float=_Number, parse_constant=_Number
)
_KEY_OR_VALUE = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{\[]|[^\s,:{}\[\]"]+')
"""The first token of each key and each value of valid JSON."""


def parse_json(text: str, file: str, mistakes: Mistakes, *, first_line: int = 1) -> Node:
    """Read the document in `text`, which begins in line `first_line` of `file`.

    Raises Unreadable at the first place that is not JSON.
    """
    root = Place(file, first_line)
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise Unreadable(root, _TOO_DEEP) from None
    except JSONDecodeError as error:
        problem = error.msg[:1].lower() + error.msg[1:].removesuffix(" at")
        if problem.startswith("expecting"):
            found = text[error.pos : error.pos + 1]
            found = quoted(found) if found else "the end of the file"
            problem = f"{problem.replace('expecting', 'expected')}, not {found}"
        place = Place(file, first_line + error.lineno - 1, f"column {error.colno}")
        raise Unreadable(place, f"not valid JSON: {problem}") from None
    return _JsonNodes(text, first_line, mistakes).root(value, root)


# D-190: `json` reads the values, and the tokens in their order tell the lines.
class _JsonNodes:
    """Makes nodes of decoded JSON: mappings are tuples of pairs there."""

    def __init__(self, text: str, first_line: int, mistakes: Mistakes) -> None:
        self._lines = _token_lines(text, first_line)
        self._mistakes = mistakes
        self._count = 0

    def root(self, value: Any, place: Place) -> Node:
        next(self._lines)
        return self._node(value, place, 0)

    def _node(self, value: Any, place: Place, depth: int) -> Node:
        if depth > DEPTH_LIMIT:
            raise Unreadable(place, _TOO_DEEP)
        self._count += 1
        if self._count > NODES_LIMIT:
            raise Unreadable(place, _TOO_MANY)
        if isinstance(value, tuple):
            return Node(place, self._mapping(value, place, depth))
        if isinstance(value, list):
            items = (
                self._node(item, place.child(at, next(self._lines)), depth + 1)
                for at, item in enumerate(value)
            )
            return Node(place, list(items))
        if isinstance(value, _Number):
            return Node(place, self._number(value, place))
        if isinstance(value, str):
            return Node(place, storable(value, place, self._mistakes))
        return Node(place, value)

    def _mapping(
        self, pairs: tuple[tuple[str, Any], ...], place: Place, depth: int
    ) -> dict[str, Node]:
        fields: dict[str, Node] = {}
        for written, value in pairs:
            line = next(self._lines)
            key = storable(written, Place(place.file, line, place.path), self._mistakes)
            entry = place.child(key, line)
            next(self._lines)
            node = self._node(value, entry, depth + 1)
            if key in fields:
                first = fields[key].place.line
                self._mistakes.add(entry, f"is given twice: the first is in line {first}")
            fields.setdefault(key, node)
        return fields

    def _number(self, text: str, place: Place) -> int | float:
        if text.lstrip("-").isdigit():
            return _whole_number(text, place, self._mistakes)
        if not text[-1].isdigit():
            raise Unreadable(place, f"not valid JSON: {text} is not allowed")
        return _fraction(text, place, self._mistakes)


def _token_lines(text: str, line: int) -> Iterator[int]:
    """Yield the line of each key and each value, in their order in the text."""
    position = 0
    for token in _KEY_OR_VALUE.finditer(text):
        line += text.count("\n", position, token.start())
        position = token.start()
        yield line


_LOADER = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_WHOLE = re.compile(r"[-+]?[0-9]+")
_FRACTION = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_HASH = re.compile(r"[ \t]+(#[A-Za-z0-9][^ \t\r]{0,20})")
_WORDS_CUT = 2
"""The fewest words of a text whose end may be cut off by accident."""
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def parse_yaml(text: str, file: str, mistakes: Mistakes) -> Node:
    """Read the document in `text`. Raises Unreadable at the place where the reading ends."""
    if found := _UNPRINTABLE.search(text):
        line = text.count("\n", 0, found.start()) + 1
        problem = f"not valid YAML: it contains the character U+{ord(found[0]):04X}"
        raise Unreadable(Place(file, line), problem)
    try:
        return _Composer(text, file, mistakes).document()
    except MarkedYAMLError as error:
        raise _syntax_error(error, text, file) from None


def _syntax_error(error: MarkedYAMLError, text: str, file: str) -> Unreadable:
    reasons = [reason for reason in (error.context, error.problem) if reason]
    problem = f"not valid YAML: {', '.join(reasons)}"
    mark = error.problem_mark or error.context_mark
    lines = text.splitlines()
    if mark is None or mark.line >= len(lines):
        return Unreadable(Place(file, len(lines), f"column {len(lines[-1]) + 1}"), problem)
    return Unreadable(Place(file, mark.line + 1, f"column {mark.column + 1}"), problem)


class _Anchored(NamedTuple):
    node: Node
    size: int
    """The number of values in the node, the node included."""

    height: int
    """The number of levels below the node."""


# D-190: `yaml.load` forgets lines, and reads `no` as false; `yaml.compose` hides tags.
class _Composer:
    """Makes nodes from the events of the parser."""

    def __init__(self, text: str, file: str, mistakes: Mistakes) -> None:
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=_LOADER)
        self._lines = text.split("\n")
        self._file = file
        self._mistakes = mistakes
        self._anchored: dict[str, _Anchored] = {}
        self._count = 0
        self._deepest = 0

    def document(self) -> Node:
        next(self._events)
        root = Place(self._file, 1)
        if not isinstance(next(self._events), yaml.DocumentStartEvent):
            raise Unreadable(root, "is empty")
        node = self._node(next(self._events), root, 0)
        next(self._events)
        following = next(self._events)
        if isinstance(following, yaml.DocumentStartEvent):
            place = Place(self._file, _line(following))
            raise Unreadable(place, "a second document begins: one is allowed")
        return node

    def _node(self, event: yaml.Event, place: Place, depth: int) -> Node:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event.anchor or "", place, depth)
        outer_deepest, count_before = self._reach(depth, place), self._count
        self._deepest = depth
        self._add(1, place)
        node = Node(place, self._value(event, place, depth))
        if isinstance(event, yaml.NodeEvent) and event.anchor:
            size, height = self._count - count_before, self._deepest - depth
            self._anchored[event.anchor] = _Anchored(node, size, height)
        self._deepest = max(self._deepest, outer_deepest)
        return node

    def _value(
        self, event: yaml.Event, place: Place, depth: int
    ) -> Scalar | list[Node] | dict[str, Node]:
        if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent) and (
            event.tag not in {None, "!"}
        ):
            tag = quoted((event.tag or "").replace("tag:yaml.org,2002:", "!!"))
            self._mistakes.add(place, f"the tag {tag} is not supported: remove it")
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(place, depth)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._list(place, depth)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, place)
        raise Unreadable(place, "not valid YAML: a value is missing")

    def _alias(self, anchor: str, place: Place, depth: int) -> Node:
        if anchor not in self._anchored:
            raise Unreadable(place, f"refers to `&{anchor}`, but no earlier value has this anchor")
        anchored = self._anchored[anchor]
        self._add(anchored.size, place)
        self._reach(depth + anchored.height, place)
        return anchored.node

    def _reach(self, depth: int, place: Place) -> int:
        """Note a depth; returns the deepest one before."""
        if depth > DEPTH_LIMIT:
            raise Unreadable(place, _TOO_DEEP)
        before = self._deepest
        self._deepest = max(before, depth)
        return before

    def _add(self, count: int, place: Place) -> None:
        self._count += count
        if self._count > NODES_LIMIT:
            raise Unreadable(place, _TOO_MANY)

    def _mapping(self, place: Place, depth: int) -> dict[str, Node]:
        fields: dict[str, Node] = {}
        lines: dict[str, int] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            line = _line(event)
            key = self._key(self._node(event, Place(place.file, line, place.path), depth + 1))
            entry = place.child(key, line)
            node = self._node(next(self._events), entry, depth + 1)
            if key in fields:
                self._mistakes.add(entry, f"is given twice: the first is in line {lines[key]}")
            elif key == "<<":
                self._mistakes.add(entry, "merge keys are not supported: write the fields out")
            else:
                fields[key], lines[key] = node, line
        return fields

    def _key(self, node: Node) -> str:
        if isinstance(node.value, str):
            return node.value
        key = shown(node.plain())
        remedy = "" if isinstance(node.value, dict | list) else ": put it in quotes"
        self._mistakes.add(node.place, f"a key must be text, not {key}{remedy}")
        return key

    def _list(self, place: Place, depth: int) -> list[Node]:
        items: list[Node] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            item = place.child(len(items), _line(event))
            items.append(self._node(event, item, depth + 1))
        return items

    def _scalar(self, event: yaml.ScalarEvent, place: Place) -> Scalar:
        text = event.value
        if event.style:
            return storable(text, place, self._mistakes)
        if text in _WORDS:
            return _WORDS[text]
        if _WHOLE.fullmatch(text):
            return _whole_number(text, place, self._mistakes)
        if _FRACTION.fullmatch(text):
            return _fraction(text, place, self._mistakes)
        self._note_cut(event, place)
        return text

    def _note_cut(self, event: yaml.ScalarEvent, place: Place) -> None:
        """Note words that end before something like `#3`, which begins a comment."""
        end = event.end_mark
        if end is None or len(event.value.split()) < _WORDS_CUT or end.line >= len(self._lines):
            return
        if found := _HASH.match(self._lines[end.line], end.column):
            problem = f"the text ends before {found[1]!r}: put it into quotes if that belongs to it"
            self._mistakes.notes.append((place, problem))


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _whole_number(text: str, place: Place, mistakes: Mistakes) -> int:
    """Return the whole number in `text`; 0 and a mistake if it has too many digits."""
    if len(text) > DIGITS_LIMIT:
        mistakes.add(place, f"is a number of {len(text)} digits, which is too many")
        return 0
    return int(text)


def _fraction(text: str, place: Place, mistakes: Mistakes) -> float:
    """Return the number in `text`; 0 and a mistake if it is too large."""
    number = float(text)
    if math.isfinite(number):
        return number
    mistakes.add(place, f"is too large a number: {quoted(text)}")
    return 0.0
