"""The evidence for a score, in one shape for all profiles.

As JSON (`Evidence.as_dict`; the command, the API and the dashboard take it as it is):

    {
      "spans": [{"start": 0, "end": 7, "kind": "exploratory", "label": "perhaps"}, ...],
      "facts": {
        "verbosity": {
          "values": {"token_count": 5.2, "token_source": "words"},
          "sentence": "1 - min(5.2 / 500, 1) = 0.99",
          "word": "brief"
        },
        ...
      },
      "notes": ["..."]
    }

Positions count characters (code points) from the start of the text, the end exclusive, as Python
slices do. Spans are in the order of their starts and may overlap. `facts` has one entry per vector,
in the profile's order. The profile's legend (`/api/profiles`) says what each kind of span means and
how a page marks it: [{"kind", "name", "meaning", "mark"}].

Evidence is a function of the exchange: the library computes it on request and never stores it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class Span:
    """A part of the response that a vector reads."""

    start: int
    end: int
    kind: str
    """A kind of the profile's legend."""

    label: str
    """The marker as the profile lists it, or the text of the part."""

    def as_dict(self) -> dict[str, Any]:
        return {"start": self.start, "end": self.end, "kind": self.kind, "label": self.label}


@dataclass(frozen=True, slots=True)
class Fact:
    """The arithmetic of one vector's score."""

    sentence: str
    """The calculation with this response's numbers, or the reason why the vector does not apply."""

    values: Mapping[str, float | str] = field(default_factory=lambda: MappingProxyType({}))
    """The numbers of the calculation, by name, in order."""

    word: str | None = None
    """The profile's word for the score, such as `brief`; None without one."""

    def as_dict(self) -> dict[str, Any]:
        return {"values": dict(self.values), "sentence": self.sentence, "word": self.word}


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why a response scored as it did."""

    spans: tuple[Span, ...]
    """In the order of their starts."""

    facts: Mapping[str, Fact]
    """Per vector."""

    notes: tuple[str, ...] = ()
    """Further notes for readers, such as a score without any marker."""

    def as_dict(self) -> dict[str, Any]:
        return {
            "spans": [span.as_dict() for span in self.spans],
            "facts": {vector: fact.as_dict() for vector, fact in self.facts.items()},
            "notes": list(self.notes),
        }


class Mark(StrEnum):
    """How a page marks a span."""

    RAISES = "raises"
    """It raises the score: underlined."""
    LOWERS = "lowers"
    """It lowers the score: framed."""
    NEUTRAL = "neutral"
    """It does neither: underlined with dots."""
    PASSAGE = "passage"
    """A longer part, which may hold other spans: a background."""


@dataclass(frozen=True, slots=True)
class SpanKind:
    """One entry of a profile's legend: a kind of span."""

    kind: str
    name: str
    """Its name for people."""

    meaning: str
    """Its effect on the score, in a sentence."""

    mark: Mark
