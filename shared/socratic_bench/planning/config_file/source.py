"""A document as somebody wrote it: values that know their place in their file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from socratic_bench.errors import InvalidConfig, InvalidInput, Mistake

SIZE_LIMIT = 5_000_000
"""Bytes of one file at most."""

DEPTH_LIMIT = 50
"""Lists and mappings within one another at most."""

NODES_LIMIT = 500_000
"""Values in one document at most, each alias of YAML counted as what it stands for."""

DIGITS_LIMIT = 40
"""Digits of a whole number at most."""

MISTAKES_LIMIT = 1000
"""Mistakes told at once at most: then reading ends, since finding words for each takes a while."""

_PLAIN_KEY = re.compile(r"[\w-]{1,60}")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands: in a file, in which line, and the way to it in the document."""

    file: str
    line: int | None = None
    """From 1; None for the file as a whole."""

    path: str = ""

    def __str__(self) -> str:
        line = "" if self.line is None else f" line {self.line}"
        return self.file + line + (f", {self.path}" if self.path else "")

    def child(self, step: str | int, line: int | None = None) -> Place:
        """The place of an entry of the list or mapping that stands here."""
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
        """A value that was not written anywhere, as if all of it stood at `place`."""
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
        """The value without its places."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value

    def at(self, steps: Iterable[str | int]) -> Node | None:
        """The node that these steps lead to, if there is one."""
        node: Node | None = self
        for step in steps:
            node = node and node.entry(step)
        return node

    def place_of(self, steps: Iterable[str | int]) -> Place:
        """The place these steps lead to, also where something is missing there."""
        node: Node | None = self
        place = self.place
        for step in steps:
            node = node and node.entry(step)
            place = node.place if node else place.child(step)
        return place

    def entry(self, step: str | int) -> Node | None:
        """One entry of a list or mapping, if it is there."""
        if isinstance(self.value, dict) and isinstance(step, str):
            return self.value.get(step)
        if isinstance(self.value, list) and isinstance(step, int) and step < len(self.value):
            return self.value[step]
        return None

    def with_fields(self, fields: dict[str, Node]) -> Node:
        """A mapping of these entries, at the same place."""
        return replace(self, value=fields)


class Unreadable(InvalidInput):
    """A document cannot be read any further. It is reported with the other mistakes."""

    def __init__(self, place: Place, problem: str) -> None:
        super().__init__(f"{place}: {problem}")
        self.place = place
        self.problem = problem


class TooManyMistakes(InvalidInput):
    """There are more mistakes than are told at once. It ends the reading of a document."""


@dataclass(slots=True)
class Mistakes:
    """The mistakes found so far."""

    _found: list[tuple[Place, str]] = field(default_factory=list)
    _are_more: bool = False

    def add(self, place: Place, problem: str) -> None:
        """Note one more. Raises TooManyMistakes where there is no room for it."""
        if self.is_full:
            self._are_more = True
            raise TooManyMistakes(f"{place}: {problem}")
        self._found.append((place, problem))

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another one."""
        return len(self._found) >= MISTAKES_LIMIT

    def __bool__(self) -> bool:
        return bool(self._found)

    def in_order(self) -> tuple[Mistake, ...]:
        """All of them, file by file, in the order of the lines."""
        files = list(dict.fromkeys(place.file for place, _ in self._found))
        ordered = sorted(
            self._found, key=lambda entry: (files.index(entry[0].file), entry[0].line or 0)
        )
        return tuple(Mistake(str(place), problem) for place, problem in ordered)

    def as_error(self) -> InvalidConfig:
        """The error that tells them, and that there are more where they are very many."""
        told = self.in_order()
        if self._are_more:
            told += (Mistake(told[-1].place, "there are more mistakes: mend these first"),)
        return InvalidConfig(told)


def storable(text: str, place: Place, mistakes: Mistakes) -> str:
    """The text, with characters that no store can keep noted and replaced."""
    if found := _UNSTORABLE.search(text):
        mistakes.add(place, f"must not contain the character U+{ord(found[0]):04X}")
        return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)
    return text


def whole_number(text: str, place: Place, mistakes: Mistakes) -> int:
    """The whole number that `text` is; 0 and a mistake where it has too many digits."""
    if len(text) > DIGITS_LIMIT:
        mistakes.add(place, f"is a number of {len(text)} digits, which is too many")
        return 0
    return int(text)


def shown(value: JsonValue) -> str:
    """A value as a message shows it, on one line and not too long."""
    if value is None:
        return "empty"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return json.dumps(value)


def quoted(text: str, limit: int = 60) -> str:
    """Text in quotes, cut after `limit` characters, with nothing in it that is not printable."""
    cut = text if len(text) <= limit else text[:limit] + "…"
    escaped = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in cut
    )
    return f'"{escaped}"'
