"""What a reader needs to see why a response scored as it did.

Evidence is a function of the text: it is computed when asked for and never stored. Positions count
characters (code points) from the start of the text, the end exclusive, as Python slices do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# A run of stops is entered at its start only and never given back: linear in any text.
_SENTENCE_END = re.compile(r"(?<![.!?])[.!?]++[\"'\u2019\u201d)\]*_]*+\s+|\n+\s*")


@dataclass(frozen=True, slots=True)
class MarkerSpan:
    """A marker where it stands in the text."""

    start: int
    end: int
    kind: str
    marker: str

    def as_dict(self) -> dict[str, Any]:
        return {"start": self.start, "end": self.end, "kind": self.kind, "marker": self.marker}


@dataclass(frozen=True, slots=True)
class TokenCount:
    """Visible output tokens, and who counted them: `provider`, or `words` (words x 1.3)."""

    count: float
    source: str

    def as_dict(self) -> dict[str, Any]:
        return {"count": self.count, "source": self.source}


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence where it stands in the text."""

    start: int
    end: int
    text: str

    def as_dict(self) -> dict[str, Any]:
        return {"start": self.start, "end": self.end, "text": self.text}


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why a response scored as it did."""

    markers: tuple[MarkerSpan, ...]
    tokens: TokenCount
    final_sentence: Sentence | None
    arithmetic: Mapping[str, str]
    """Per vector, the calculation written out with this response's numbers."""

    notes: tuple[str, ...] = ()
    """What a reader should know besides, such as a score that no marker decided."""

    def as_dict(self) -> dict[str, Any]:
        sentence = self.final_sentence
        return {
            "markers": [span.as_dict() for span in self.markers],
            "tokens": self.tokens.as_dict(),
            "final_sentence": None if sentence is None else sentence.as_dict(),
            "arithmetic": dict(self.arithmetic),
            "notes": list(self.notes),
        }


def final_sentence(text: str) -> Sentence | None:
    """The last sentence of `text`: after the last sentence end or line break. None if blank."""
    end = len(text.rstrip())
    start = len(text) - len(text.lstrip())
    if start >= end:
        return None
    for boundary in _SENTENCE_END.finditer(text, start, end):
        if boundary.end() < end:
            start = boundary.end()
    return Sentence(start, end, text[start:end])
