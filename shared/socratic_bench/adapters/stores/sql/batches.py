"""The sizes of the SQL store's batches of keys and rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

CHUNK = 500
"""The most keys in one `SELECT`."""

PAGE = 500
"""The number of rows in a page."""

Item = TypeVar("Item")


def chunks(items: Iterable[Item], size: int = CHUNK) -> Iterator[list[Item]]:
    """Yield `items` in order, `size` at a time."""
    remaining = iter(items)
    while chunk := list(islice(remaining, size)):
        yield chunk
