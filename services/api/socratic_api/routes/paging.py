"""Pages of long lists: `offset=` and `limit=` in the query of an address, and a bound in bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

from pydantic import BaseModel
from pydantic_core import to_json
from starlette.requests import Request

from socratic_api.endpoints import QueryParameter
from socratic_bench.errors import InvalidInput

OFFSET_LIMIT: Final = 1_000_000

PAGE_BYTES: Final = 4_000_000
"""Bytes of the entries of a page: a function gives whole answers, of little more than this."""

Entry = TypeVar("Entry", bound=BaseModel)


def page_of(usual: int, most: int) -> tuple[QueryParameter, ...]:
    """Return the parameters of a page with `usual` entries by default and `most` at most."""
    return (
        QueryParameter(
            "offset",
            "How many to pass over.",
            {"type": "integer", "minimum": 0, "maximum": OFFSET_LIMIT, "default": 0},
        ),
        QueryParameter(
            "limit",
            "How many to return; fewer where they are large. `next_offset` leads to the next page.",
            {"type": "integer", "minimum": 1, "maximum": most, "default": usual},
        ),
    )


def page_within(entries: Iterable[Entry], most_bytes: int = PAGE_BYTES) -> tuple[Entry, ...]:
    """Return the first of the entries, as many as fit into a page, and one at least."""
    page: list[Entry] = []
    size = 0
    for entry in entries:
        size += len(to_json(entry)) + 1
        if page and size > most_bytes:
            break
        page.append(entry)
    return tuple(page)


def next_offset(offset: int, page: int, total: int) -> int | None:
    """Return where the next page begins, after one with `page` entries; None after the last."""
    end = offset + page
    return end if page and end < total else None


def whole_number(request: Request, name: str, *, default: int, low: int, high: int) -> int:
    """Return a number in the query. Raises InvalidInput for one that is out of bounds."""
    text = request.query_params.get(name)
    if text is None:
        return default
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
    if not low <= number <= high:
        raise InvalidInput(f"{name}: must be a whole number from {low} to {high:,}")
    return number


def flag(request: Request, name: str) -> bool:
    """Return a yes or no in the query; no without one. Raises InvalidInput for anything else."""
    match request.query_params.get(name):
        case None | "false":
            return False
        case "true":
            return True
    raise InvalidInput(f"{name}: must be true or false")
