"""The turns before a response: from a record's fields, a chat, or lines with speakers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from socratic_bench.errors import InvalidInput
from socratic_bench.scoring.exchange import EarlierTurn, Status
from socratic_bench.scoring.score import earlier_turns_of as turns_of
from socratic_cli.reading.messages import SpeakerSide, content_of, side_of, speaker_of, status_of

CHAT_KEYS: Final = ("messages", "conversations", "conversation")
"""The keys of a record that hold the messages of a chat."""

_WRITTEN: Final = ("content", "text", "value", "parts", "refusal")
"""The keys of what a message says."""


_QUESTIONS: Final = ("instruction", "question", "prompt")
"""The fields that other tools have in place of `student_message`."""


def system_prompt_of(record: Mapping[str, Any]) -> str | None:
    """Return the system prompt of a record's chat; None if the record has no chat."""
    chat = next((record[key] for key in CHAT_KEYS if isinstance(record.get(key), list)), None)
    if chat is None:
        return None
    said = [
        each["content"]
        for each in chat
        if isinstance(each, Mapping)
        and each.get("role") in ("system", "developer")
        and isinstance(each.get("content"), str)
    ]
    return "\n\n".join(said)


def student_message_of(record: Mapping[str, Any]) -> str:
    """Return the student's message of this turn; empty if unknown. Raises TypeError unless it is a
    string.
    """
    if "student_message" not in record:
        asked = (record.get(key) for key in _QUESTIONS)
        said = next((each for each in asked if isinstance(each, str)), "")
        user = record.get("user")
        # A `user` without a blank is an account.
        return user if not said and isinstance(user, str) and " " in user.strip() else said
    found = record["student_message"]
    if not isinstance(found, str):
        raise TypeError(f"`student_message` must be a string, not {_shown(found)}")
    return found


def earlier_turns_of(record: Mapping[str, Any]) -> tuple[EarlierTurn, ...]:
    """Return the turns before this one. Raises TypeError or ValueError, naming the turn."""
    return turns_of(record.get("earlier_turns") or ())


def answer_key_of(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the forms of the final answer; none if unknown. Raises TypeError unless it is a list
    of strings.
    """
    found = record.get("answer_key") or ()
    if not isinstance(found, list | tuple) or not all(isinstance(form, str) for form in found):
        raise TypeError(f"`answer_key` must be a list of strings, not {_shown(found)}")
    return tuple(found)


def student_and_turns(messages: object) -> dict[str, Any] | None:
    """Return what the student said last in a chat, and the turns before; None if a tutor, or
    nobody, said the last of it.
    """
    if not isinstance(messages, list):
        return None
    said = list(_said_in(messages))
    if not said or said[-1].side is not SpeakerSide.STUDENT:
        return None
    turns = ChatTurns()
    for each in said:
        turns.add(each)
    return {"student_message": turns.student, "earlier_turns": list(turns.earlier)}


def of_chat(messages: object) -> list[dict[str, Any]]:
    """Return a record for each answer of the assistant in a chat.

    Its message is the `text`, the user's messages since the answer before it the
    `student_message`, and all earlier ones the `earlier_turns`. A message without content or with
    `weight` 0 is no answer. Raises TypeError or ValueError, naming the message.
    """
    answers: list[dict[str, Any]] = []
    for said, turns in answered_in(messages):
        end = {} if said.status is None else {"status": said.status}
        before = {"student_message": turns.student, "earlier_turns": list(turns.earlier)}
        answers.append({"text": said.text, **before, **end})
    if not answers:
        raise ValueError("`messages` needs an answer: a message of role assistant with a text")
    return answers


def answered_in(messages: object) -> Iterator[tuple[ChatMessage, ChatTurns]]:
    """Yield each answer of the assistant in a chat, with the turns up to it.

    The turns go on with the next answer. Raises as `of_chat`, but for a chat without an answer.
    """
    if not isinstance(messages, list):
        raise TypeError(f"`messages` must be a list, not {_shown(messages)}")
    turns = ChatTurns()
    for each in _said_in(messages):
        if each.side is SpeakerSide.TUTOR and each.is_answer:
            yield each, turns
        turns.add(each)


class ChatMessage(NamedTuple):
    """One message of a chat."""

    side: SpeakerSide
    text: str
    status: Status | None
    is_answer: bool
    message: Mapping[str, Any]
    """As it stands in the chat."""


class ChatTurns:
    """The turns of a chat up to a message."""

    def __init__(self) -> None:
        self._student: list[str] = []
        self.earlier: list[EarlierTurn] = []

    @property
    def student(self) -> str:
        """What the student said since the tutor's last answer."""
        return "\n\n".join(self._student)

    def add(self, said: ChatMessage) -> None:
        """Go on by one message."""
        if said.side is SpeakerSide.STUDENT:
            self._student.append(said.text)
        elif said.side is SpeakerSide.TUTOR:
            self.earlier.append(EarlierTurn(self.student, said.text, None, said.status))
            self._student = []


def _said_in(messages: list[object]) -> Iterator[ChatMessage]:
    """Yield the messages of student and tutor that say something."""
    for number, message in enumerate(messages, 1):
        place = f"`messages` {number}"
        if not isinstance(message, Mapping):
            raise TypeError(f"{place} must be an object with `role`, not {_shown(message)}")
        side = _side(place, message)
        if side is SpeakerSide.NEITHER:
            continue
        written = [message[key] for key in _WRITTEN if message.get(key) is not None]
        if not written:
            if side is SpeakerSide.STUDENT and "content" not in message:
                raise TypeError(f"{place} needs a `content` of text alone")
            continue
        content = content_of(written[0])
        if content is None:
            raise TypeError(f"{place} needs a `content` of text alone")
        if message.get("tool_calls") and not content.text.strip():
            continue
        status = Status.REFUSED if content.refused else status_of(message)
        yield ChatMessage(side, content.text, status, message.get("weight") != 0, message)


def _side(place: str, message: Mapping[str, Any]) -> SpeakerSide:
    try:
        side = speaker_of(message)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None
    if side is None:
        raise ValueError(f"{place} needs a `role` of user, assistant, system or tool")
    return side


def _shown(value: object) -> str:
    return json.dumps(value, default=repr)[:40]


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

    side: SpeakerSide
    text: str


def is_dialogue(text: str) -> bool:
    """Whether lines begin with both sides, or every line that is not blank with one of them."""
    sides = {side_of(label["who"]) for label in _AT_A_LINE.finditer(text)}
    if SpeakerSide.STUDENT in sides and SpeakerSide.TUTOR in sides:
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
            side = side_of(label["who"]) or SpeakerSide.NEITHER
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
