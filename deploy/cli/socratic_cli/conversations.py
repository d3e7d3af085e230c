"""The turns before a response: read from a record's fields, or from a chat's messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from socratic_bench.scoring.exchange import EarlierTurn
from socratic_bench.scoring.score import MOST_TOKENS
from socratic_bench.scoring.statuses import Status
from socratic_cli.contents import content_of
from socratic_cli.reply_ends import status_of
from socratic_cli.speakers import Side, speaker_of

CHAT_KEYS: Final = ("messages", "conversations", "conversation")
"""The keys of a record that hold the messages of a chat."""

_WRITTEN: Final = ("content", "text", "value", "parts", "refusal")
"""The keys of what a message says."""


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


def student_and_turns(messages: object) -> dict[str, Any] | None:
    """Return what the student said last in a chat, and the turns before; None if a tutor, or
    nobody, said the last of it.
    """
    if not isinstance(messages, list):
        return None
    said = list(_said_in(messages))
    if not said or said[-1].side is not Side.STUDENT:
        return None
    turns = _Turns()
    for each in said:
        turns.add(each)
    return {"student_message": turns.student, "earlier_turns": list(turns.earlier)}


def of_chat(messages: object) -> list[dict[str, Any]]:
    """Return a record for each answer of the assistant in a chat.

    Its message is the `text`, the user's messages since the answer before it the
    `student_message`, and all earlier ones the `earlier_turns`. A message without content or with
    `weight` 0 is no answer. Raises TypeError or ValueError, naming the message.
    """
    if not isinstance(messages, list):
        raise TypeError(f"`messages` must be a list, not {_shown(messages)}")
    turns = _Turns()
    answers: list[dict[str, Any]] = []
    for each in _said_in(messages):
        if each.side is Side.TUTOR and each.is_answer:
            end = {} if each.status is None else {"status": each.status}
            before = {"student_message": turns.student, "earlier_turns": list(turns.earlier)}
            answers.append({"text": each.text, **before, **end})
        turns.add(each)
    if not answers:
        raise ValueError("`messages` needs an answer: a message of role assistant with a text")
    return answers


class _Said(NamedTuple):
    """One message of a chat."""

    side: Side
    text: str
    status: Status | None
    is_answer: bool


class _Turns:
    """The turns of a chat up to a message."""

    def __init__(self) -> None:
        self._student: list[str] = []
        self.earlier: list[EarlierTurn] = []

    @property
    def student(self) -> str:
        """What the student said since the tutor's last answer."""
        return "\n\n".join(self._student)

    def add(self, said: _Said) -> None:
        """Go on by one message."""
        if said.side is Side.STUDENT:
            self._student.append(said.text)
        elif said.side is Side.TUTOR:
            self.earlier.append(EarlierTurn(self.student, said.text, None, said.status))
            self._student = []


def _said_in(messages: list[object]) -> Iterator[_Said]:
    """Yield the messages of student and tutor that say something."""
    for number, message in enumerate(messages, 1):
        place = f"`messages` {number}"
        if not isinstance(message, Mapping):
            raise TypeError(f"{place} must be an object with `role`, not {_shown(message)}")
        side = _side(place, message)
        if side is Side.NEITHER:
            continue
        written = [message[key] for key in _WRITTEN if message.get(key) is not None]
        if not written:
            if side is Side.STUDENT and "content" not in message:
                raise TypeError(f"{place} needs a `content` of text alone")
            continue
        content = content_of(written[0])
        if content is None:
            raise TypeError(f"{place} needs a `content` of text alone")
        status = Status.REFUSED if content.refused else status_of(message)
        yield _Said(side, content.text, status, message.get("weight") != 0)


def _side(place: str, message: Mapping[str, Any]) -> Side:
    try:
        side = speaker_of(message)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None
    if side is None:
        raise ValueError(f"{place} needs a `role` of user, assistant, system or tool")
    return side


def _shown(value: object) -> str:
    return json.dumps(value, default=repr)[:40]
