"""The three vectors of `socratic-v1`, 0.0 to 1.0, and the markers they search for.

A marker counts where neither neighbour is a letter, a digit or an underscore; any white space may
separate the words of a phrase. Case-insensitive means: equal after lowering each character by
itself, so that a position in the lowered text is the same position in the original.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

VERBOSITY_LIMIT = 500
"""The output tokens at which verbosity reaches 0.0."""

EXPLORATORY_MARKERS = ("consider", "might", "depends", "perhaps", "what if", "could")
DIRECTIVE_MARKERS = ("should", "must", "the answer is", "always", "never")


def verbosity(tokens: float) -> float:
    """Return `1 - min(tokens / 500, 1)`: 0.0 for 500 visible output tokens or more."""
    return 1.0 - min(tokens, VERBOSITY_LIMIT) / VERBOSITY_LIMIT


def exploratory(exploratory_count: int, directive_count: int) -> float:
    """Return `((e - d) / (e + d) + 1) / 2`, the balance of markers; 0.5 without a marker."""
    marked = exploratory_count + directive_count
    if marked == 0:
        return 0.5
    return ((exploratory_count - directive_count) / marked + 1.0) / 2.0


def interrogative(text: str) -> float:
    """Return 1.0 if the stripped text ends with a question mark, else 0.0."""
    return 1.0 if text.rstrip().endswith("?") else 0.0


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


def lowered(text: str) -> str:
    """Return `text` in lower case, character for character: the result has the same length.

    `str.lower` makes two characters of the Turkish İ alone; here it becomes a plain i, as in
    regular expressions.
    """
    low = text.lower()
    return low if len(low) == len(text) else text.replace("\u0130", "i").lower()


@dataclass(frozen=True, slots=True)
class Marker:
    """One marker word or phrase, and its anchor: the word that the search looks for first."""

    phrase: str
    words: tuple[str, ...] = field(init=False)
    anchor: int = field(init=False)

    def __post_init__(self) -> None:
        words = tuple(lowered(self.phrase).split())
        if not words:
            raise ValueError("a marker needs at least one word")
        longest = max(range(len(words)), key=lambda index: len(words[index]))
        object.__setattr__(self, "words", words)
        object.__setattr__(self, "anchor", longest)


class MarkerSet:
    """Markers of one kind, ready for counting and locating in a text."""

    __slots__ = ("_markers", "_phrases", "_single_words")

    def __init__(self, phrases: Sequence[str]) -> None:
        self._markers = tuple(Marker(phrase) for phrase in phrases)
        self._single_words = tuple(m.words[0] for m in self._markers if len(m.words) == 1)
        self._phrases = tuple(m for m in self._markers if len(m.words) > 1)

    @property
    def phrases(self) -> tuple[str, ...]:
        return tuple(marker.phrase for marker in self._markers)

    def count(self, low: str) -> int:
        """Return how often the markers occur in `low`, a lowered text."""
        total = 0
        for word in self._single_words:
            if word in low:
                total += _count_word(low, word)
        for marker in self._phrases:
            if marker.words[marker.anchor] in low:
                total += sum(1 for _ in _occurrences(low, marker))
        return total

    def locate(self, low: str) -> list[tuple[int, int, str]]:
        """Return the places of the markers in `low` as (start, end, phrase), in text order."""
        found = [
            (start, end, marker.phrase)
            for marker in self._markers
            for start, end in _occurrences(low, marker)
        ]
        return sorted(found)


def _count_word(low: str, word: str) -> int:
    size, count = len(word), 0
    at = low.find(word)
    while at >= 0:
        end = at + size
        if _joined_before(low, at) or _joined_after(low, end):
            at = low.find(word, at + 1)
        else:
            count += 1
            at = low.find(word, end)
    return count


def _occurrences(low: str, marker: Marker) -> Iterator[tuple[int, int]]:
    anchor = marker.words[marker.anchor]
    before, after = marker.words[: marker.anchor], marker.words[marker.anchor + 1 :]
    taken = 0
    at = low.find(anchor)
    while at >= 0:
        whole = _extend(low, at, at + len(anchor), before, after)
        if whole is not None and whole[0] >= taken:
            yield whole
            taken = whole[1]
        at = low.find(anchor, at + 1)


def _extend(
    low: str, start: int, end: int, before: tuple[str, ...], after: tuple[str, ...]
) -> tuple[int, int] | None:
    """Return the span of the whole phrase around its anchor, or None if it does not match."""
    for word in reversed(before):
        gap = start
        while gap > 0 and low[gap - 1].isspace():
            gap -= 1
        if gap == start or not low.endswith(word, 0, gap):
            return None
        start = gap - len(word)
    for word in after:
        gap = end
        while gap < len(low) and low[gap].isspace():
            gap += 1
        if gap == end or not low.startswith(word, gap):
            return None
        end = gap + len(word)
    if _joined_before(low, start) or _joined_after(low, end):
        return None
    return start, end


def _joined_before(low: str, at: int) -> bool:
    return at > 0 and ((previous := low[at - 1]).isalnum() or previous == "_")


def _joined_after(low: str, at: int) -> bool:
    return at < len(low) and ((following := low[at]).isalnum() or following == "_")
