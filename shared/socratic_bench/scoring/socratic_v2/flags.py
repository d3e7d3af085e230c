"""Flags: words that point at a mistake."""

from __future__ import annotations

import re
from typing import Final

FLAGS: Final = (
    *("but", "not quite", "mistake", "incorrect", "wrong", "error", "however", "careful"),
    *("confusion", "misunderstanding", "reconsider", "another look", "double-check"),
    *("double check", "almost", "close", "not correct", "isn't", "wasn't", "actually"),
)
"""The words and phrases of `_FLAG`. None overlaps another, so each can be counted by itself."""


def _whole(flag: str) -> re.Pattern[str]:
    # The literal stands first, and what precedes it is looked at afterwards: a search by word
    # boundaries takes thirty times as long.
    return re.compile(rf"{re.escape(flag)}(?<!\w{'.' * len(flag)})\b")


_PATTERNS: Final = tuple((flag, _whole(flag)) for flag in FLAGS)


def flags_in(text: str) -> list[tuple[int, int, str]]:
    """Return the flags of a normalised text as (start, end, flag), flag by flag."""
    return [
        (*match.span(), flag)
        for flag, pattern in _PATTERNS
        if flag in text
        for match in pattern.finditer(text)
    ]
