"""Sentences that only repeat the student (D10)."""

from __future__ import annotations

from typing import Final

from socratic_bench.scoring.socratic_v2.sentences import Sentence
from socratic_bench.scoring.socratic_v2.words import padded

SHORTEST_ECHO: Final = 3
"""Words of an echo, at least."""

_SCANNED_CHARACTERS: Final = 4_000_000
"""Characters of a student's message to search in before building an index of it."""


class StudentWords:
    """The words of a student's message, ready for many searches."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._padded = padded(words)
        self._left = _SCANNED_CHARACTERS
        self._index: PhraseIndex | None = None

    @property
    def has_index(self) -> bool:
        """Whether the message was long enough, and searched often enough, for an index."""
        return self._index is not None

    def is_echoed_by(self, sentence: Sentence) -> bool:
        """Whether the student said the sentence, word for word."""
        if len(sentence.words) < SHORTEST_ECHO or len(sentence.padded) > len(self._padded):
            return False
        if self._left > 0:
            self._left -= len(self._padded)
            return sentence.padded in self._padded
        # Many sentences times a long message would take quadratic time.
        if self._index is None:
            self._index = PhraseIndex(self._words)
        return self._index.contains(sentence.words)


class PhraseIndex:
    """A suffix automaton of words: finds a phrase in time linear in the phrase alone."""

    def __init__(self, words: list[str]) -> None:
        self._next: list[dict[str, int]] = [{}]
        self._link = [-1]
        self._length = [0]
        last = 0
        for word in words:
            last = self._extended(last, word)

    def contains(self, phrase: list[str]) -> bool:
        """Whether the words of `phrase` follow one another in the indexed words."""
        state = 0
        for word in phrase:
            following = self._next[state].get(word)
            if following is None:
                return False
            state = following
        return True

    def _extended(self, last: int, word: str) -> int:
        """Append a word to the indexed ones and return the state of all of them."""
        new = self._added({}, self._length[last] + 1, 0)
        state = last
        while state >= 0 and word not in self._next[state]:
            self._next[state][word] = new
            state = self._link[state]
        if state >= 0:
            self._link[new] = self._split(state, word)
        return new

    def _split(self, state: int, word: str) -> int:
        """Return the state that `state` reaches by `word` with no longer phrase in it."""
        target = self._next[state][word]
        length = self._length[state] + 1
        if self._length[target] == length:
            return target
        copy = self._added(dict(self._next[target]), length, self._link[target])
        self._link[target] = copy
        while state >= 0 and self._next[state].get(word) == target:
            self._next[state][word] = copy
            state = self._link[state]
        return copy

    def _added(self, following: dict[str, int], length: int, link: int) -> int:
        self._next.append(following)
        self._length.append(length)
        self._link.append(link)
        return len(self._next) - 1
