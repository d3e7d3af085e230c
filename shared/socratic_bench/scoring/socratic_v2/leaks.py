"""Leaks: what gives the answer away (D19, D19a). Numbers and equations of a text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from socratic_bench.scoring.socratic_v2.sentences import Sentence

# A digit in front lets the search skip other characters; the matches are those of `_NUMBER`.
NUMBER: Final = re.compile(r"[0-9][0-9]*(?:,[0-9]{3})*(?:\.[0-9]+)?")
EQUATION: Final = re.compile(r"=[-$\u00a3\u20ac( ]*[0-9]|[0-9][)% ]*=")

TELLING: Final = (
    "the answer is",
    "the answer was",
    "the answer would be",
    "the correct answer",
    "you need to",
    "you have to",
    "you should",
    "you must",
    "we need to",
    "we have to",
    "is actually",
    "are actually",
    "this means",
    "that means",
    "which means",
    "gives us",
    "gives you",
    "because",
    "therefore",
    "equals",
)
"""The phrases that tell."""

_TELLING_PADDED: Final = tuple(f" {phrase} " for phrase in TELLING)
_KEYS: Final = "actually answer because equals gives have means must need should therefore"
_TELLING_KEYS: Final = frozenset(_KEYS.split())
"""Each phrase has one of these words, so most sentences need no search."""


def numbers_of(text: str) -> set[str]:
    """Return the distinct numbers of a normalised text, as written but without commas."""
    return {number.replace(",", "") for number in NUMBER.findall(text)}


def equations_in(text: str) -> int:
    """Return the number of equations of a normalised text."""
    return len(EQUATION.findall(text)) if "=" in text else 0


def tells(sentence: Sentence) -> bool:
    """Whether the sentence has a phrase that tells."""
    return not _TELLING_KEYS.isdisjoint(sentence.words) and any(
        phrase in sentence.padded for phrase in _TELLING_PADDED
    )


def telling_phrases(sentence: Sentence) -> Iterator[tuple[int, int, str]]:
    """Return the phrases that tell, as first word, last word and phrase."""
    for phrase, inner in zip(TELLING, _TELLING_PADDED, strict=True):
        if (at := sentence.padded.find(inner)) >= 0:
            first = sentence.padded.count(" ", 0, at)
            yield first, first + phrase.count(" "), phrase
