"""What the reader of a figure has to know about the answers behind it, as counts.

The judge counts the notes of each answer; cells sum them with the counts of the profile. A note
never changes a score. Names begin with `note.`; `version.` and the version that a provider named
counts its answers, `asked.` and `reused.` with a day those that were asked for on it.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from datetime import date
from typing import Final

from socratic_bench.scoring.length import words_and_marks

PREFIX: Final = "note."
VERSION: Final = "version."
ASKED: Final = "asked."
REUSED_OF: Final = "reused."
"""The day of UTC on which an answer was asked for: by this experiment, or by an earlier one."""

LONGEST_VERSION: Final = 80
"""Characters of a version that are kept."""

# Notes of the wire: the runner adds them to a response.
THOUGHTS: Final = "note.thoughts"
"""Thoughts stood within the text, and were taken out."""

END_TOKENS: Final = "note.end_tokens"
"""Control tokens of a chat template were cut off."""

STUDENT_TURN: Final = "note.student_turn"
"""The model went on as its student."""

CITATIONS: Final = "note.citations"
"""Citation marks were taken out."""

REPEATED_STREAM: Final = "note.repeated_stream"
"""The stream sent its text more than once."""

CONTEXT_CUT: Final = "note.context_cut"
"""The provider read no more than in the turn before, or exactly as much as fits a usual context."""

AT_LIMIT: Final = "note.at_limit"
"""A finished answer has as many tokens as were asked for at most."""

UPPER_COST: Final = "note.upper_cost"
"""The cost takes tokens of a cache at no less than their unknown price."""

SPLIT: Final = "note.split"
"""A gateway, not the provider, divided the tokens into visible ones and reasoning."""

REUSED: Final = "note.reused"
"""The answer is one that an earlier experiment asked for."""

WIRE: Final = frozenset(
    {
        THOUGHTS,
        END_TOKENS,
        STUDENT_TURN,
        CITATIONS,
        REPEATED_STREAM,
        CONTEXT_CUT,
        AT_LIMIT,
        UPPER_COST,
        SPLIT,
    }
)

# Notes of the text: the judge counts them.
MARKS: Final = "note.marks_after_question"
"""A question mark, and marks after it: `?**`, `?"`, `?!`, `? [1]`, an emoji."""

MID_SENTENCE: Final = "note.mid_sentence"
"""A finished answer ends within a sentence."""

NOT_ENGLISH: Final = "note.not_english"
"""The text has hardly a word of English."""

ESTIMATED: Final = "note.estimated"
"""The length is estimated: the provider gave no count."""

UNITS: Final = "note.units"
"""Words and marks of the answers whose tokens the provider counted."""

TOKENS: Final = "note.tokens"
"""The tokens that it counted for these answers."""

ANSWERS: Final = "note.answers"
"""Answers with a text."""

SAME: Final = "note.same"
SAME_SQUARES: Final = "note.same_squares"
"""The number of a text, and its square: n texts are one where n x sum of squares = sum ^ 2."""

_AFTER_QUESTION: Final = re.compile(
    r"\?[\s\u200b-\u200f\u2060\ufeff\ufe0f]*"
    r"(?:[!?*_`\"'\u2019\u201d\u00bb)\]}>.~|$\\\u2026\ufe0f\u200b-\u200f\u2060\ufeff]"
    r"|\[[^\[\]\n]{1,60}\](?:\([^()\n]{0,300}\))?|\([^()\n]{1,60}\)"
    r"|[\u2190-\u2bff\U0001f000-\U0001faff\u200d\U0001f3fb-\U0001f3ff]|\s)+\Z"
)
_TAIL: Final = 400
"""Characters at the end of a text that are looked at for marks after a question mark."""

_STUDENT: Final = re.compile(
    # The look ahead leaves most lines after one letter.
    r"\n[ \t>#*_]*(?=[suhlpe\u00e9])(?:Student|User|Human|Learner|Pupil|Seeker|Sch\u00fcler|"
    r"Estudiante|\u00c9l\u00e8ve)[*_]*\s?:",
    re.IGNORECASE,
)

_COMMON: Final = frozenset(
    """a about an and are as at be but by can could do does for from had has have how i if in is it
    let's like might my not of on one or our should so some that the their them then there they
    think this to try up us was we what when where which why will with would you your""".split()  # noqa: SIM905
)
"""Words that English texts hardly do without."""

_FEWEST_WORDS: Final = 8
_COMMON_SHARE: Final = 0.12
_SEEN: Final = 240
"""Characters of a text whose language is looked at."""


def counts_of(
    text: str,
    *,
    finished: bool,
    visible_tokens: int | None,
    version: str | None,
    wire: Iterable[str],
    asked_on: date | None = None,
    reused: bool = False,
) -> dict[str, int]:
    """Return the counts of one answer: `finished` is False for one that a limit cut off.

    `reused` is True for a copy of one that an earlier experiment asked for on the day `asked_on`.
    `wire` names the notes of the runner; names that this version does not know are left out.
    """
    number = zlib.crc32(text.encode(errors="replace")) % 999_983 + 1
    counts = {ANSWERS: 1, SAME: number, SAME_SQUARES: number * number}
    for note in wire:
        if note in WIRE:
            counts[note] = 1
    for note in _notes_in(text, finished=finished):
        counts[note] = 1
    if reused:
        counts[REUSED] = 1
    if asked_on is not None:
        counts[f"{REUSED_OF if reused else ASKED}{asked_on}"] = 1
    if visible_tokens is None:
        counts[ESTIMATED] = 1
    else:
        counts[UNITS] = round(words_and_marks(text))
        counts[TOKENS] = visible_tokens
    if version:
        counts[VERSION + version[:LONGEST_VERSION]] = 1
    return counts


def _notes_in(text: str, *, finished: bool) -> Iterable[str]:
    """Yield the notes that the text itself gives reason for."""
    end = text.rstrip()
    if not end.endswith("?") and "?" in end[-_TAIL:] and _AFTER_QUESTION.search(end[-_TAIL:]):
        yield MARKS
    elif finished and end and (end[-1].isalpha() or end[-1] in ",;:-\u2013\u2014(") and " " in end:
        yield MID_SENTENCE
    if ":" in text and _STUDENT.search(text):
        yield STUDENT_TURN
    if is_not_english(text):
        yield NOT_ENGLISH


def is_not_english(text: str) -> bool:
    """Whether a text of eight words or more has hardly one that is common in English."""
    pieces = text[:_SEEN].lower().split()
    if pieces and len(_COMMON.intersection(pieces)) >= _COMMON_SHARE * len(pieces):
        return False
    words = [piece for piece in pieces if piece[0].isalpha()]
    common = sum(map(_COMMON.__contains__, words))
    if len(words) >= _FEWEST_WORDS:
        return common < _COMMON_SHARE * len(words)
    if common or text.isascii():
        return False
    letters = [letter for letter in text[:_SEEN] if letter.isalpha()]
    latin = sum(letter < "\u0250" for letter in letters)
    return len(letters) >= 2 * _FEWEST_WORDS and 2 * latin < len(letters)
