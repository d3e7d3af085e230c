"""Words (D7), padded forms (D9) and content keys (D13) of a normalised text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

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
