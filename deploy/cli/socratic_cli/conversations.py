"""The turns before a response: read from a record's fields, or from a chat's messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from socratic_bench.scoring.exchange import EarlierTurn
from socratic_bench.scoring.score import MOST_TOKENS
from socratic_bench.scoring.statuses import Status

_SIDES: Final = {"user": "student", "assistant": "tutor", "system": None, "developer": None}
"""The speaker for each role of a message; instructions are left out."""


def student_message_of(record: Mapping[str, Any]) -> str:
    """Return the student's message of this turn; empty if unknown. Raises TypeError unless it is a
    string.
    """
    found = record.get("student_message", "")
    if not isinstance(found, str):
        raise TypeError(f"`student_message` must be a string, not {_shown(found)}")
    return found


def earlier_turns_of(record: Mapping[str, Any]) -> tuple[EarlierTurn, ...]:
    """Return the turns before this one. Raises TypeError or ValueError, naming the turn."""
    found = record.get("earlier_turns") or ()
    if isinstance(found, str | Mapping):
        raise TypeError('`earlier_turns` must be a list of {"student": …, "tutor": …}')
    return tuple(_turn(f"`earlier_turns` {number}", turn) for number, turn in enumerate(found, 1))


def _turn(place: str, turn: object) -> EarlierTurn:
    if isinstance(turn, EarlierTurn):
        return turn
    if not isinstance(turn, Mapping):
        raise TypeError(f'{place} must be {{"student": …, "tutor": …}}, not {_shown(turn)}')
    student, tutor = turn.get("student"), turn.get("tutor")
    if not isinstance(student, str) or not isinstance(tutor, str):
        raise TypeError(f"{place} needs `student` and `tutor`, both strings")
    tokens = turn.get("output_tokens")
    if tokens is not None and (type(tokens) is not int or not 0 <= tokens <= MOST_TOKENS):
        raise ValueError(f"{place}: `output_tokens` must be a whole number, not {_shown(tokens)}")
    status = turn.get("status")
    return EarlierTurn(student, tutor, tokens, None if status is None else Status(status))


def of_chat(messages: object) -> dict[str, Any]:
    """Return the fields of a record that a chat's messages stand for.

    The assistant's last message is the `text`, the user's message before it the `student_message`,
    and all earlier ones the `earlier_turns`. Consecutive messages of one role are joined. Raises
    TypeError or ValueError, naming the message.
    """
    if not isinstance(messages, list):
        raise TypeError(f"`messages` must be a list, not {_shown(messages)}")
    said: list[tuple[str, str]] = []
    for number, message in enumerate(messages, 1):
        side, text = _said(f"`messages` {number}", message)
        if side is None:
            continue
        if said and said[-1][0] == side:
            said[-1] = (side, f"{said[-1][1]}\n\n{text}")
        else:
            said.append((side, text))
    if not said or said[-1][0] != "tutor":
        raise ValueError("`messages` must end with a message of role assistant")
    if said[0][0] == "tutor":
        said.insert(0, ("student", ""))
    turns = [
        EarlierTurn(student, tutor)
        for (_, student), (_, tutor) in zip(said[::2], said[1::2], strict=True)
    ]
    scored = turns.pop()
    return {
        "text": scored.tutor,
        "student_message": scored.student,
        "earlier_turns": turns,
    }


def _said(place: str, message: object) -> tuple[str | None, str]:
    role = message.get("role") if isinstance(message, Mapping) else None
    if not isinstance(message, Mapping) or not isinstance(role, str) or role not in _SIDES:
        roles = ", ".join(_SIDES)
        raise ValueError(f"{place} needs a `role` of {roles}, not {_shown(role)}")
    return _SIDES[role], _content(place, message.get("content"))


def _content(place: str, content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [None]
    texts = [part.get("text") if isinstance(part, Mapping) else None for part in parts]
    written = [text for text in texts if isinstance(text, str)]
    if len(written) < len(parts):
        raise TypeError(f"{place} needs a `content` of text alone")
    return "".join(written)


def _shown(value: object) -> str:
    return json.dumps(value, default=repr)[:40]
