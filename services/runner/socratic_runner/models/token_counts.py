"""What providers say of tokens, which spoils no reply whatever it is."""

from __future__ import annotations

from typing import Any, Final

from socratic_bench.scoring.score import MOST_TOKENS

_MOST: Final = MOST_TOKENS // 4
"""Of one count: so that the sum of those that belong together is none too large either."""


def count_in(value: Any) -> int | None:
    """A number of tokens; None where `value` cannot be one."""
    return value if type(value) is int and 0 <= value <= _MOST else None
