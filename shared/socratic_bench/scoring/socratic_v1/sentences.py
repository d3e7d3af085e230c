"""The last sentence of a response."""

from __future__ import annotations

import re

# A match enters a run of stops at its start only and never backtracks: linear in any text.
_SENTENCE_END = re.compile(r"(?<![.!?])[.!?]++[\"'\u2019\u201d)\]*_]*+\s+|\n+\s*")


def final_sentence(text: str) -> tuple[int, int] | None:
    """Return the start and end of the last sentence, or None if `text` is blank.

    The last sentence starts after the last sentence end or line break.
    """
    end = len(text.rstrip())
    start = len(text) - len(text.lstrip())
    if start >= end:
        return None
    for boundary in _SENTENCE_END.finditer(text, start, end):
        if boundary.end() < end:
            start = boundary.end()
    return start, end
