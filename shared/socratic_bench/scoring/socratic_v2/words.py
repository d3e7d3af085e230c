"""Words (D7), sentences (D8), padded forms (D9), content keys (D13) and flags of a text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

WORD: Final = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
KEY_LENGTH: Final = 6

_STOP: Final = (
    "about all also and any are because been but can could did does doing don't for from get "
    "going got had has have her here his how into it's its just know let let's like make many "
    "may might more much must need not now okay one only our out over same say see she should "
    "some such than that that's the their them then there these they think this those too use "
    "very want was well were what when where which who why will with would yes you you're "
    "your"
)
STOP: Final = frozenset(_STOP.split())
"""Words that say nothing of the matter."""

_WORD_CHARACTERS: Final = b"abcdefghijklmnopqrstuvwxyz0123456789'"
_BLANKED: Final = bytes(code if code in _WORD_CHARACTERS else 0x20 for code in range(256))


def blanked(text: str) -> str:
    """Return `text`, equally long, with a space for each character that no word may have."""
    # Bytes translate and split in a quarter of the time that a regular expression takes.
    return text.encode("ascii", "replace").translate(_BLANKED).decode("ascii")


def words_in(part: str) -> list[str]:
    """Return the words of a text, or of a part of one, that `blanked` returned (D7)."""
    runs = part.split()
    if "'" not in part:
        return runs
    words: list[str] = []
    for run in runs:
        if "'" in run:
            words += WORD.findall(run)
        else:
            words.append(run)
    return words


def words_of(text: str) -> list[str]:
    """Return the words of a normalised text, in order."""
    return words_in(blanked(text))


def padded(words: Iterable[str]) -> str:
    """Return the words between single spaces, with one before and one after them (D9)."""
    return f" {' '.join(words)} "


def is_content(word: str) -> bool:
    """Whether a word has a content key (D13)."""
    return (len(word) > 2 or word.isdigit()) and word not in STOP


def keys_of(words: set[str]) -> set[str]:
    """Return the content keys of words: the first six characters of each content word (D13)."""
    return {word[:KEY_LENGTH] for word in words - STOP if len(word) > 2 or word.isdigit()}


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


FLAGS: Final = (
    *("but", "not quite", "mistake", "incorrect", "wrong", "error", "however", "careful"),
    *("confusion", "misunderstanding", "reconsider", "another look", "double-check"),
    *("double check", "almost", "close", "not correct", "isn't", "wasn't", "actually"),
)
"""The words and phrases of `_FLAG`. None overlaps another, so each can be counted by itself."""


def _whole(flag: str) -> re.Pattern[str]:
    # The literal stands first, and what precedes it is looked at afterwards: a search by word
    # boundaries takes thirty times as long.
    return re.compile(rf"{re.escape(flag)}(?<!\w{'.' * len(flag)})\b")


_PATTERNS: Final = tuple((flag, _whole(flag)) for flag in FLAGS)


def flags_in(text: str) -> list[tuple[int, int, str]]:
    """Return the flags of a normalised text as (start, end, flag), flag by flag."""
    return [
        (*match.span(), flag)
        for flag, pattern in _PATTERNS
        if flag in text
        for match in pattern.finditer(text)
    ]
