"""A message of a transcript: who says it, its text, and how a reply ended."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, NamedTuple

from socratic_bench.invalid_values import shown
from socratic_bench.scoring.exchange import Status
from socratic_runner.models.stop_reasons import Ended, how_it_ended


class Content(NamedTuple):
    """What a message says."""

    text: str
    thoughts: bool = False
    """Whether thoughts stand beside the text."""

    refused: bool = False
    """Whether it is a refusal."""


_THOUGHTS: Final = frozenset(
    {"thinking", "redacted_thinking", "reasoning", "reasoning_text", "thoughts"}
)
_SILENT: Final = frozenset(
    {"tool_use", "tool_result", "tool_call", "function_call", "server_tool_use", "image"}
    | {"image_url", "input_image", "input_audio", "web_search_call", "web_search_tool_result"}
)
"""Types of parts that say nothing in words."""


def content_of(content: object) -> Content | None:
    """Return what a content says; None if it holds no text that can be read."""
    if isinstance(content, str):
        return Content(content)
    if isinstance(content, Mapping):
        inner = content.get("parts", content.get("content"))
        return content_of(inner) if isinstance(inner, list) else _of_part(content)
    if not isinstance(content, list) or not content:
        return None
    parts = [_of_part(part) for part in content]
    read = [part for part in parts if part is not None]
    if len(read) < len(parts):
        return None
    return Content(
        "".join(part.text for part in read),
        any(part.thoughts for part in read),
        any(part.refused for part in read),
    )


def _of_part(part: object) -> Content | None:
    if isinstance(part, str):
        return Content(part)
    if not isinstance(part, Mapping):
        return None
    kind, text = part.get("type"), part.get("text")
    if kind in _THOUGHTS or part.get("thought") is True or "reasoningContent" in part:
        return Content("", thoughts=True)
    if kind == "message":
        return content_of(part.get("content"))
    refused = kind == "refusal" or bool(part.get("refusal"))
    said = part.get("refusal") if refused and not isinstance(text, str) else text
    if isinstance(said, str):
        return Content(said, refused=refused)
    silent = refused or kind in _SILENT or "functionCall" in part
    return Content("", refused=refused) if silent else None


_REASONS: Final = ("finish_reason", "finishReason", "stop_reason", "stopReason")
_UNFINISHED: Final = {
    "failed": Status.ERROR,
    "error": Status.ERROR,
    "cancelled": Status.ERROR,
    "in_progress": Status.ERROR,
    "incomplete": Status.TRUNCATED,
}
"""Words of `status` beside a reply that did not finish."""


def status_of(value: Mapping[str, Any]) -> Status | None:
    """Return the status that the fields of a record or a reply state; None if they state none."""
    if value.get("error"):
        return Status.ERROR
    if value.get("refusal") or value.get("isRefusal") is True:
        return Status.REFUSED
    for name in _REASONS:
        if isinstance(reason := value.get(name), str) and reason:
            ended = how_it_ended(reason)
            return ended.status if isinstance(ended, Ended) else Status.ERROR
    status = value.get("status")
    return _UNFINISHED.get(status) if isinstance(status, str) else None


class SpeakerSide(Enum):
    """A side of a tutoring conversation; each value is a name of it, too."""

    STUDENT = "student"
    TUTOR = "tutor"
    NEITHER = "system"
    """An instruction, or what a tool gave."""


_NAMES: Final = {
    SpeakerSide.STUDENT: "user human prompter student students learner pupil seeker s sn ss",
    SpeakerSide.TUTOR: "assistant gpt chatgpt claude gemini bot chatbot model ai tutor teacher t",
    SpeakerSide.NEITHER: "system developer tool function",
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


def side_of(name: str) -> SpeakerSide | None:
    """Return the side of a speaker's name, compared without case, blanks or a colon at its end;
    None for an unknown name.
    """
    plain = name.strip().rstrip(":").rstrip().casefold()
    if (side := _SIDES.get(plain)) is not None:
        return side
    if numbered := _NUMBERED.match(plain):
        return _SIDES[numbered[1]]
    return SpeakerSide.TUTOR if _TITLED.match(plain) else None


def speaker_of(record: Mapping[str, Any]) -> SpeakerSide | None:
    """Return the side that says a row or a message; None if it names no speaker.

    Raises ValueError for an unknown name.
    """
    by_user = record.get(_WRITTEN_BY_USER)
    if by_user is not None:
        return SpeakerSide.STUDENT if by_user is True or _is_true(by_user) else SpeakerSide.TUTOR
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
