"""Reads YAML with the place of every value: data only, as in JSON.

Plain values have the types of YAML 1.2 (its core schema), so that `no` and `2025-11-03` are text.
Tags and merge keys are mistakes; anchors and aliases are allowed, within bounds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

import yaml
from yaml.error import MarkedYAMLError

from socratic_bench.invalid_values import quoted, shown
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

_LOADER = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_WHOLE = re.compile(r"[-+]?[0-9]+")
_FRACTION = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
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
            raise Unreadable(place, f"is nested more than {DEPTH_LIMIT} levels deep")
        before = self._deepest
        self._deepest = max(before, depth)
        return before

    def _add(self, count: int, place: Place) -> None:
        self._count += count
        if self._count > NODES_LIMIT:
            raise Unreadable(place, f"the document holds more than {NODES_LIMIT} values")

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
            return whole_number(text, place, self._mistakes)
        if _FRACTION.fullmatch(text):
            number = float(text)
            if math.isfinite(number):
                return number
            self._mistakes.add(place, f"is too large a number: {quoted(text)}")
        return text


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1
