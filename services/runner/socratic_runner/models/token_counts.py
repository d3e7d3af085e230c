"""Reads providers' token counts; a wrong count spoils no reply."""

from __future__ import annotations

from typing import Any, Final

from socratic_bench.scoring.score import MOST_TOKENS

_MOST: Final = MOST_TOKENS // 4
"""The most tokens of one count: a sum of counts then stays in range too."""


def count_in(value: Any) -> int | None:
    """Return a number of tokens; None for an impossible value."""
    return value if type(value) is int and 0 <= value <= _MOST else None
