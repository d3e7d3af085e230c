"""Genuine questions: open to the student, no echo and no offer of service (D11, D12)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from socratic_bench.scoring.socratic_v2.echoes import StudentWords
from socratic_bench.scoring.socratic_v2.sentences import Sentence
from socratic_bench.scoring.socratic_v2.words import is_content

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
