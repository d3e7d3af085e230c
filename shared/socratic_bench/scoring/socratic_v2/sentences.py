"""The sentences of a body (D8)."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from socratic_bench.scoring.socratic_v2.words import blanked, padded, words_in

# The same matches as in docs/socratic-v2.md, `_END`. One set of characters in front lets the search
# skip the others: a quarter of the time. A run of stops is entered at its start only, so that the
# search is linear in any text.
_END: Final = re.compile(
    r"[?.!\n](?:(?<=\n)"
    r"|(?<=\?)[.!?]*[\"')\]*_~`\u00bb]*"
    r"|(?<=[.!])(?<![.!][.!])[.!]*[\"')\]*_~`\u00bb]*(?=[ \n]|\Z))"
)


class Sentence(NamedTuple):
    """The words between two terminators."""

    words: list[str]
    padded: str
    is_marked: bool
    """Whether the sentence ends with a question mark."""

    start: int
    """In the body."""

    end: int
    """In the body, after the terminator."""


def sentences_of(body: str) -> list[Sentence]:
    """Return the sentences of a body, in order; those without words are left out."""
    plain = blanked(body)
    sentences: list[Sentence] = []
    start = 0
    for terminator in _END.finditer(body):
        if words := words_in(plain[start : terminator.start()]):
            end = terminator.end()
            is_marked = body[terminator.start()] == "?"
            sentences.append(Sentence(words, padded(words), is_marked, start, end))
        start = terminator.end()
    if words := words_in(plain[start:]):
        sentences.append(
            Sentence(words, padded(words), is_marked=False, start=start, end=len(body))
        )
    return sentences
