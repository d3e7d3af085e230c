"""A document as nodes: values that know their place in their file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from socratic_bench.errors import InvalidConfig, InvalidInput, Mistake
from socratic_bench.invalid_values import quoted

SIZE_LIMIT = 5_000_000
"""Bytes of one file at most."""

DEPTH_LIMIT = 50
"""Levels of lists and mappings at most."""

NODES_LIMIT = 500_000
"""Values in one document at most. An alias of YAML counts as all values of its anchor."""

MISTAKES_LIMIT = 1000
"""Mistakes in one report at most. Reading ends there: it takes a while to word each mistake."""

_PLAIN_KEY = re.compile(r"[\w-]{1,60}")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a value: its file, its line, and its path in the document."""

    file: str
    line: int | None = None
    """From 1; None for the file as a whole."""

    path: str = ""

    def __str__(self) -> str:
        line = "" if self.line is None else f" line {self.line}"
        return self.file + line + (f", {self.path}" if self.path else "")

    def child(self, step: str | int, line: int | None = None) -> Place:
        """Return the place of an entry of the list or mapping at this place."""
        if isinstance(step, int):
            path = f"{self.path}[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            path = f"{self.path}.{step}" if self.path else step
        else:
            path = f"{self.path}[{quoted(step)}]"
        return Place(self.file, line or self.line, path)


@dataclass(frozen=True, slots=True)
class Node:
    """One value and its place: a scalar, a list or a mapping of nodes."""

    place: Place
    value: Scalar | list[Node] | dict[str, Node]

    @classmethod
    def of(cls, value: JsonValue, place: Place) -> Node:
        """Make nodes of a value that stands in no file, all of them at `place`."""
        if isinstance(value, dict):
            return cls(place, {key: cls.of(entry, place) for key, entry in value.items()})
        if isinstance(value, list):
            return cls(place, [cls.of(entry, place) for entry in value])
        return cls(place, value)

    @property
    def fields(self) -> dict[str, Node] | None:
        """The entries of a mapping; None for anything else."""
        return self.value if isinstance(self.value, dict) else None

    def plain(self) -> JsonValue:
        """Return the value without its places."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value

    def at(self, steps: Iterable[str | int]) -> Node | None:
        """Return the node that these steps lead to, or None."""
        node: Node | None = self
        for step in steps:
            node = node and node.entry(step)
        return node

    def place_of(self, steps: Iterable[str | int]) -> Place:
        """Return the place that these steps lead to, even if there is no value."""
        node: Node | None = self
        place = self.place
        for step in steps:
            node = node and node.entry(step)
            place = node.place if node else place.child(step)
        return place

    def entry(self, step: str | int) -> Node | None:
        """Return one entry of a list or mapping, or None."""
        if isinstance(self.value, dict) and isinstance(step, str):
            return self.value.get(step)
        if isinstance(self.value, list) and isinstance(step, int) and step < len(self.value):
            return self.value[step]
        return None

    def with_fields(self, fields: dict[str, Node]) -> Node:
        """Return a mapping of these entries at the same place."""
        return replace(self, value=fields)


class Unreadable(InvalidInput):
    """The document cannot be read any further; the report has this with the other mistakes."""

    def __init__(self, place: Place, problem: str) -> None:
        super().__init__(f"{place}: {problem}")
        self.place = place
        self.problem = problem


class TooManyMistakes(InvalidInput):
    """The document has more mistakes than one report holds. Its reading ends."""


@dataclass(slots=True)
class Mistakes:
    """The mistakes found so far."""

    _found: list[tuple[Place, str]] = field(default_factory=list)
    _are_more: bool = False
    notes: list[tuple[Place, str]] = field(default_factory=list)
    """Places that are no mistakes, but perhaps not meant so."""

    def add(self, place: Place, problem: str) -> None:
        """Add a mistake. Raises TooManyMistakes if the report is full."""
        if self.is_full:
            self._are_more = True
            raise TooManyMistakes(f"{place}: {problem}")
        self._found.append((place, problem))

    @property
    def is_full(self) -> bool:
        """Whether the report has no room for another mistake."""
        return len(self._found) >= MISTAKES_LIMIT

    def __bool__(self) -> bool:
        return bool(self._found)

    def in_order(self) -> tuple[Mistake, ...]:
        """Return all mistakes, file by file, in the order of the lines."""
        files = list(dict.fromkeys(place.file for place, _ in self._found))
        ordered = sorted(
            self._found, key=lambda entry: (files.index(entry[0].file), entry[0].line or 0)
        )
        return tuple(Mistake(str(place), problem, place.line) for place, problem in ordered)

    def as_error(self) -> InvalidConfig:
        """Return the error with all mistakes; its last one says if there are more."""
        told = self.in_order()
        if self._are_more:
            more = "there are more mistakes: mend these first"
            told += (Mistake(told[-1].place, more, told[-1].line),)
        return InvalidConfig(told)


def storable(text: str, place: Place, mistakes: Mistakes) -> str:
    """Return the text, with a mistake and a replacement for characters that no store can keep."""
    if found := _UNSTORABLE.search(text):
        mistakes.add(place, f"must not contain the character U+{ord(found[0]):04X}")
        return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)
    return text
