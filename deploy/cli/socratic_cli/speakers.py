"""Who says a row, a message or a line: the student, the tutor, or neither."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from socratic_bench.invalid_values import shown


class Side(Enum):
    """A side of a tutoring conversation; each value is a name of it, too."""

    STUDENT = "student"
    TUTOR = "tutor"
    NEITHER = "system"
    """An instruction, or what a tool gave."""


_NAMES: Final = {
    Side.STUDENT: "user human prompter student students learner pupil seeker s sn ss",
    Side.TUTOR: "assistant gpt chatgpt claude gemini bot chatbot model ai tutor teacher t",
    Side.NEITHER: "system developer tool function",
}
_SIDES: Final = {name: side for side, names in _NAMES.items() for name in names.split()}

_NUMBERED: Final = re.compile(r"(t|s|tutor|teacher|student|assistant|user)[ _-]?\d{1,3}\Z")
_TITLED: Final = re.compile(r"(?:mr|ms|mrs|miss|prof|dr)\b\.? ?\w")

_WRITTEN_BY_USER: Final = "isCreatedByUser"
_NAMED_FIELDS: Final = ("role", "author.role", "speaker", "sender", "from", "user")
_LOOSE_FIELDS: Final = ("author", "type")
"""Fields that often hold something else: only a known name in them is a speaker."""

_SPELLINGS: Final = {
    name: (name, name.capitalize(), name.upper()) for name in (*_NAMED_FIELDS, *_LOOSE_FIELDS)
}
SPEAKER_FIELDS: Final = frozenset(
    {_WRITTEN_BY_USER, *(each for spelled in _SPELLINGS.values() for each in spelled)}
)
"""The fields that may name the speaker of a row."""


def side_of(name: str) -> Side | None:
    """Return the side of a speaker's name, compared without case, blanks or a colon at its end;
    None for an unknown name.
    """
    plain = name.strip().rstrip(":").rstrip().casefold()
    if (side := _SIDES.get(plain)) is not None:
        return side
    if numbered := _NUMBERED.match(plain):
        return _SIDES[numbered[1]]
    return Side.TUTOR if _TITLED.match(plain) else None


def speaker_of(record: Mapping[str, Any]) -> Side | None:
    """Return the side that says a row or a message; None if it names no speaker.

    Raises ValueError for an unknown name.
    """
    by_user = record.get(_WRITTEN_BY_USER)
    if by_user is not None:
        return Side.STUDENT if by_user is True or _is_true(by_user) else Side.TUTOR
    unknown: tuple[str, str] | None = None
    for field in _NAMED_FIELDS:
        name = _value(record, field)
        if isinstance(name, str):
            if (side := side_of(name)) is not None:
                return side
            unknown = unknown or (field, name)
    for field in _LOOSE_FIELDS:
        name = _value(record, field)
        if isinstance(name, str) and len(name) > 1 and (side := side_of(name)) is not None:
            return side
    if unknown is not None:
        field, name = unknown
        raise ValueError(
            f"`{field}` names {shown(name)}, who is neither a known tutor nor a student; "
            "write `tutor` or `student`"
        )
    return None


def _value(record: Mapping[str, Any], field: str) -> object:
    for spelled in _SPELLINGS[field]:
        if (found := record.get(spelled)) is not None:
            return found
    if field == "author.role" and isinstance(author := record.get("author"), Mapping):
        return author.get("role")
    return None


def _is_true(value: object) -> bool:
    return str(value).strip().casefold() in {"true", "1", "yes"}
