"""The roles of sentences: echoes (D10), genuine questions, and leaks of the answer (D19)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final

from socratic_bench.scoring.socratic_v2.words import Sentence, is_content, padded

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


SHORTEST_QUESTION: Final = 3
"""Words of a genuine question, at least."""

_OPEN: Final = "how what when where which who whose why"
OPEN: Final = frozenset(_OPEN.split())
"""The words that open a question."""

_CUE: Final = (
    "am are aren't can can't could couldn't did didn't do does doesn't don't had hadn't has "
    "hasn't have haven't how's is isn't may might shall should shouldn't was wasn't were "
    "weren't what's where's who's will won't would wouldn't"
)
CUE: Final = OPEN | frozenset(_CUE.split())
"""The words that make a sentence with a question mark a question."""

_SERVICE: Final = re.compile(
    r" (?:can|could|may) i (?:help|assist|do|clarify|explain|offer|provide|answer|get) "
    r"| (?:does|do|did) (?:this|that|it|these|those) (?:help|answer|sound|work|clarify) "
)
_OFFER: Final = re.compile(
    r" would you (?:like|prefer|want|need|care|be interested) | shall (?:i|we) "
    r"| (?:want|like|need) me to "
    r"| do you (?:want|need|have) (?:any|more|some|help|another|further|other) "
    r"| should i (?:explain|give|show|tell|provide|continue|go) | anything else "
    r"| (?:any|other|more|further|additional) (?:questions|doubts) | let me know | feel free "
    r"| makes? sense | sounds? good "
    r"| are you ready (?:to|for) | is (?:that|this|it) clear | got it "
)


class Role(StrEnum):
    """What a sentence does."""

    QUESTION = "question"
    """A genuine question."""
    ECHO = "echo"
    """It repeats the student."""
    OFFER = "offer"
    """It offers a service in the form of a question."""
    OTHER = "other"


def roles_of(sentences: Sequence[Sentence], student: StudentWords) -> list[Role]:
    """Return the role of each sentence, in order."""
    asked: set[str] = set()
    return [_role(sentence, student, asked) for sentence in sentences]


def _role(sentence: Sentence, student: StudentWords, asked: set[str]) -> Role:
    if student.is_echoed_by(sentence):
        return Role.ECHO
    if not sentence.is_marked or len(sentence.words) < SHORTEST_QUESTION:
        return Role.OTHER
    if CUE.isdisjoint(sentence.words):
        return Role.OTHER
    if is_offer(sentence.padded):
        return Role.OFFER
    if sentence.padded in asked:
        return Role.OTHER
    asked.add(sentence.padded)
    return Role.QUESTION


def is_offer(padded: str) -> bool:
    """Whether a sentence, in its padded form, offers a service (D11)."""
    if _SERVICE.search(padded):
        return True
    offer = _OFFER.search(padded)
    return offer is not None and OPEN.isdisjoint(padded[: offer.start()].split())


def is_open(sentence: Sentence) -> bool:
    """Whether the sentence has an open word."""
    return not OPEN.isdisjoint(sentence.words)


def opens(question: Sentence) -> bool:
    """Whether a genuine question has an open word and says what it is about (D15)."""
    return is_open(question) and any(map(is_content, question.words))


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
