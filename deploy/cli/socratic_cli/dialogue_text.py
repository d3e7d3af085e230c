"""Reads plain text whose lines name their speaker, such as `Tutor: Why do you think so?`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from socratic_bench.errors import InvalidInput
from socratic_cli.speakers import Side, side_of

_LABELS: Final = (
    r"(?:student|learner|pupil|tutor|teacher|user|assistant|human|bot|chatbot|chatgpt|gpt|system)"
    r"(?:[ _-]?\d{1,3})?|ai|s|t\d*"
)
_LABEL: Final = re.compile(
    rf"[ \t\u00a0]*(?P<who>{_LABELS})[ \t\u00a0]*:[ \t\u00a0]*", re.IGNORECASE
)
_AT_A_LINE: Final = re.compile(
    rf"^[ \t\u00a0]*(?P<who>{_LABELS})[ \t\u00a0]*:", re.IGNORECASE | re.MULTILINE
)
_A_NAME: Final = re.compile(
    r"[ \t\u00a0]*(?:(?:Mr|Ms|Mrs|Dr)\.? )?[A-Z][a-z]{1,15}[ \t]*:(?!\S*//)"
)
_REMEDY: Final = (
    "name the speaker of every line or paragraph, give each answer as a JSON line with `text`, or "
    "take the whole as one answer with --whole"
)


class Spoken(NamedTuple):
    """What one speaker says in a row."""

    number: int
    """The line where it begins, from 1."""

    side: Side
    text: str


def is_dialogue(text: str) -> bool:
    """Whether lines begin with both sides, or every line that is not blank with one of them."""
    sides = {side_of(label["who"]) for label in _AT_A_LINE.finditer(text)}
    if Side.STUDENT in sides and Side.TUTOR in sides:
        return True
    lines = (line for line in text.splitlines() if line.strip())
    return bool(sides) and all(_LABEL.match(line) for line in lines)


def spoken_in(name: str, lines: Sequence[str]) -> Iterator[Spoken]:
    """Yield what each speaker says: a line that names one, and the rest of its paragraph.

    Raises InvalidInput, before the first, for a line whose speaker is not known.
    """
    turns: list[Spoken] = []
    follows = False
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            follows = False
        elif (label := _LABEL.match(line)) is not None:
            side = side_of(label["who"]) or Side.NEITHER
            turns.append(Spoken(number, side, line[label.end() :].rstrip()))
            follows = True
        elif follows and not _A_NAME.match(line):
            last = turns.pop()
            turns.append(last._replace(text=f"{last.text}\n{line.rstrip()}"))
        else:
            raise InvalidInput(
                f"{name} is a dialogue, and its line {number} does not say who speaks: {_REMEDY}"
            )
    yield from turns
