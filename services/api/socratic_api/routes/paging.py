"""Pages of long lists: `offset=` and `limit=` in the query of an address."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request

from socratic_api.endpoints import QueryParameter
from socratic_bench.errors import InvalidInput

OFFSET_LIMIT: Final = 1_000_000


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
            "How many to return.",
            {"type": "integer", "minimum": 1, "maximum": most, "default": usual},
        ),
    )


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
