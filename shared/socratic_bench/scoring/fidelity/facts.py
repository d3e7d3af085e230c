"""The facts of one turn: genuine questions, words told, a run-on, and the scenario's answer.

Questions, words and run-ons are those of `socratic-v2`. The facts depend on the response, the
student's message and the key alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from socratic_bench.scoring.exchange import Exchange
from socratic_bench.scoring.socratic_v2.reading import (
    Reading,
    normalised,
    normalised_positions,
    reading_of,
)
from socratic_bench.scoring.socratic_v2.sentence_roles import Role
from socratic_bench.scoring.socratic_v2.words import words_of

_DELETED: Final = "*$"
"""Characters that set a number apart in Markdown and TeX: `**0** N`, `$0$ N`."""


class Facts(NamedTuple):
    """What a response does, whether it kept or lapsed."""

    questions: int
    """Genuine questions."""

    told: int
    """Words of the other sentences, and words within code blocks."""

    speaks: bool
    """Whether the tutor goes on as the student or as another tutor."""

    says_key: bool
    """Whether the response says the scenario's final answer."""


def reading_of_turn(text: str, student: str) -> Reading:
    """Read a response to the student's message, without the conversation before it."""
    return reading_of(Exchange(text, student_message=student))


def facts_of(reading: Reading, key: tuple[str, ...]) -> Facts:
    """Return the facts of a response, in time linear in its length."""
    questions = told = 0
    for sentence, role in zip(reading.sentences, reading.roles, strict=True):
        if role is Role.QUESTION:
            questions += 1
        else:
            told += len(sentence.words)
    told += sum(len(words_of(fence)) for fence in reading.body.fences)
    return Facts(questions, told, reading.body.is_cut, says_key(reading.response, key))


def says_key(response: str, key: tuple[str, ...]) -> bool:
    """Whether a normalised response has a form of the key that stands alone."""
    if not key:
        return False
    text = _plain(response)
    return any(form in text and whole.search(text) for form, whole in _forms(key))


def key_places(text: str, key: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Return the start and the end in `text` of each form of the key that stands alone there."""
    characters: list[str] = []
    places: list[int] = []
    for character, place in zip(normalised(text), normalised_positions(text), strict=True):
        is_space = character.isspace()
        if character in _DELETED or (is_space and characters and characters[-1] == " "):
            continue
        characters.append(" " if is_space else character)
        places.append(place)
    plain = "".join(characters)
    for _, whole in _forms(key):
        for match in whole.finditer(plain):
            yield places[match.start()], places[match.end() - 1] + 1


@lru_cache(maxsize=256)
def _forms(key: tuple[str, ...]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return each form of a key as a response would have it, and the search for it."""
    forms = dict.fromkeys(_plain(normalised(form)) for form in key)
    return tuple((form, _alone(form)) for form in forms if form)


def _plain(text: str) -> str:
    """Return a normalised text without deleted characters, its words one blank apart."""
    for character in _DELETED:
        text = text.replace(character, "")
    return " ".join(text.split())


def _alone(form: str) -> re.Pattern[str]:
    """Return the search for a form that is no part of a longer word, number, date or path."""
    return re.compile(rf"(?<![\w./,-]){re.escape(form)}(?![\w/]|[.,]\d)")
