"""Finding the last sentence of a response."""

from __future__ import annotations

import re

# A run of stops is entered at its start only and never given back: linear in any text.
_SENTENCE_END = re.compile(r"(?<![.!?])[.!?]++[\"'\u2019\u201d)\]*_]*+\s+|\n+\s*")


def final_sentence(text: str) -> tuple[int, int] | None:
    """Where the last sentence of `text` starts and ends, or None if `text` is blank.

    It starts after the last sentence end or line break.
    """
    end = len(text.rstrip())
    start = len(text) - len(text.lstrip())
    if start >= end:
        return None
    for boundary in _SENTENCE_END.finditer(text, start, end):
        if boundary.end() < end:
            start = boundary.end()
    return start, end
