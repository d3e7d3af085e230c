"""How many keys and rows the SQL store handles at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

CHUNK = 500
"""How many keys a `SELECT` is given at a time."""

PAGE = 500
"""How many rows a page has."""

Item = TypeVar("Item")


def chunks(items: Iterable[Item], size: int = CHUNK) -> Iterator[list[Item]]:
    """`items` in order, `size` at a time."""
    remaining = iter(items)
    while chunk := list(islice(remaining, size)):
        yield chunk
