"""Reads the conversations of a file of records: chats, stored replies of an API, plain answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from socratic_bench.errors import InvalidInput
from socratic_bench.scoring.exchange import EarlierTurn, Status
from socratic_cli.reading.answers import answers_of, is_plain, names_speaker, said_in, usage_of
from socratic_cli.reading.conversations import (
    CHAT_KEYS,
    answer_key_of,
    earlier_turns_of,
    student_message_of,
    system_prompt_of,
)
from socratic_cli.reading.files import (
    START_BYTES,
    TEXT_KEYS,
    Entry,
    bounded_lines,
    entries,
    keys_named,
    record_entry,
)
from socratic_cli.reading.foreign_files import foreign_record, no_answer
from socratic_cli.reading.json_stream import documents
from socratic_cli.reading.logged_runs import (
    LogFacts,
    LoggedRun,
    LoggedTurn,
    LogRows,
    Unread,
    instant,
    member,
    text_or_none,
    whole_number,
)
from socratic_cli.reading.messages import SpeakerSide, speaker_of

_MODELS: Final = (
    ("model",),
    ("model_id",),
    ("generator",),
    ("response", "body", "model"),
    ("body", "model"),
    ("response", "model"),
)
"""The paths of a model's name in a record, in the order of preference."""

_SAMPLES: Final = ("id", "custom_id", "scenario_id", "conversation_id", "conversation_hash")
"""The fields that may name a record, in the order of preference."""

_ARRAY: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*[{\[\"]")

CONVERSATIONS: Final = (
    *("conversation_id", "conversationId", "conversation_uuid", "dialogue_id", "dialog_id"),
    *("thread_id", "session_id", "chat_id", "sample_id", "message_tree_id"),
)
"""The fields that tell rows of one conversation from those of the next."""


def read_records(path: Path, facts: LogFacts) -> LogRows:
    """Yield the conversations of a file of records.

    Raises InvalidInput for a file that is no list of answers.
    """
    dialogue = _Dialogue(path.stem)
    begun: LoggedRun | None = None
    for entry in _entries(path):
        turn = member(entry.content, "turn")
        for run in _runs(entry, path.stem, dialogue):
            joined = _joined(begun, run, turn)
            if begun is not None and not isinstance(joined, LoggedRun):
                yield begun
                begun = None
            if isinstance(joined, LoggedRun):
                begun = joined
            elif isinstance(run, LoggedRun) and turn == 1:
                begun = run
            else:
                yield joined or run
    if begun is not None:
        yield begun
    yield from dialogue.ended()


def _entries(path: Path) -> Iterator[Entry]:
    """Yield the entries of a file; those of a JSON array one by one, however long it is."""
    try:
        with path.open("rb") as file:
            if not _ARRAY.match(file.read(START_BYTES)):
                file.seek(0)
                yield from entries(bounded_lines(file), name=str(path), whole=False)
                return
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read: {error.strerror}") from None
    for number, found in enumerate(documents(path), start=1):
        if isinstance(found, Unread):
            yield Entry(number, found.place, None, found.problem)
        elif isinstance(found[1], str):
            yield Entry(number, *found)
        else:
            yield record_entry(number, *found)


def _joined(
    begun: LoggedRun | None, run: LoggedRun | Unread, turn: object
) -> LoggedRun | Unread | None:
    """Return the run that goes on with a row of a later turn; None for a row that begins one."""
    if not isinstance(run, LoggedRun) or not isinstance(turn, int) or turn < 2:
        return None
    if begun is None or _key(begun) != _key(run) or len(begun.turns) != turn - 1:
        return Unread(run.place, f"turn {turn} does not follow the turns before it")
    return replace(begun, turns=[*begun.turns, *run.turns], error=run.error)


def _key(run: LoggedRun) -> tuple[str, str, int | None]:
    return run.model, run.sample, run.repeat


def _runs(entry: Entry, model: str, dialogue: _Dialogue) -> LogRows:
    record = entry.content
    if entry.problem is not None or record is None:
        yield Unread(entry.place, entry.problem or "cannot be read")
    elif isinstance(record, str):
        if record.strip():
            turn = LoggedTurn("", record)
            yield LoggedRun(entry.place, model, f"answer {entry.number}", [turn])
    else:
        try:
            yield from _of_record(entry.place, record, model, dialogue)
        except (TypeError, ValueError) as error:
            yield Unread(entry.place, str(error))


def _of_record(
    place: str, record: Mapping[str, Any], model: str, dialogue: _Dialogue
) -> Iterator[LoggedRun]:
    if not is_plain(record) and names_speaker(record):
        yield from dialogue.add(place, record)
        return
    answers = [record] if is_plain(record) else answers_of(record)
    turns = [turn_of(answer, record) for answer in answers]
    # The answers of a chat follow each other; those of one reply are alternatives.
    is_chat = any(key in record for key in CHAT_KEYS) and len(turns) > 1
    if is_chat:
        yield _run(place, record, model, turns, ())
        return
    for answer, turn in zip(answers, turns, strict=True):
        yield _run(place, record, model, [turn], earlier_turns_of(answer))


def _run(
    place: str,
    record: Mapping[str, Any],
    model: str,
    turns: Sequence[LoggedTurn],
    before: tuple[EarlierTurn, ...],
) -> LoggedRun:
    named = (text_or_none(member(record, *keys)) for keys in _MODELS)
    sample = next((record[key] for key in _SAMPLES if key in record), "")
    failed = len(turns) == 1 and turns[0].status is Status.ERROR and not turns[0].text.strip()
    return LoggedRun(
        place=place,
        model=next((each for each in named if each), model),
        sample=str(sample) if isinstance(sample, str | int) else "",
        turns=[] if failed else turns,
        before=before,
        repeat=whole_number(record.get("repeat", record.get("epoch"))),
        error=_error(record) if failed else None,
        asked=turns[0].student if failed else "",
        system_prompt=system_prompt_of(record),
        dimension=text_or_none(record.get("dimension", record.get("dataset"))) or "",
        at=instant(record.get("created_at", record.get("created"))),
        answer_key=answer_key_of(record),
    )


def _error(record: Mapping[str, Any]) -> str:
    places = ((), ("response", "body"), ("response",), ("body",))
    for place in places:
        error = member(record, *place, "error")
        said = error if isinstance(error, str) else member(error, "message")
        if (told := text_or_none(said, 500)) is not None:
            return told
    return "the record has no answer"


def turn_of(answer: Mapping[str, Any], record: Mapping[str, Any]) -> LoggedTurn:
    """Return an answer of a record. Raises TypeError or ValueError, saying what is wrong in it."""
    text = next((answer[key] for key in TEXT_KEYS if key in answer), None)
    if not isinstance(text, str):
        if (foreign := foreign_record(record)) is not None:
            raise TypeError(f"this is {foreign}")
        raise TypeError(f"needs `text`, `response` or `output`, a string; {keys_named(record)}")
    if (wrong := no_answer(text)) is not None:
        raise ValueError(f"{wrong}, no answer: give each answer as a row of its own")
    input_tokens, thoughts = usage_of(record)
    visible = whole_number(answer.get("output_tokens"))
    reason = record.get("finish_reason", record.get("stop_reason"))
    latency = record.get("latency_ms", record.get("latencyMs"))
    return LoggedTurn(
        student_message_of(answer),
        text,
        Status(answer.get("status", Status.OK)),
        visible,
        thoughts if visible is not None else 0,
        input_tokens,
        whole_number(latency),
        text_or_none(reason),
        text_or_none(record.get("model_version")),
    )


class _Dialogue:
    """Joins rows that name their speaker: those of one conversation follow each other."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._place = ""
        self._conversation: object = None
        self._said: list[str] = []
        self._turns: list[LoggedTurn] = []

    def add(self, place: str, record: Mapping[str, Any]) -> Iterator[LoggedRun]:
        """Take a row; yields the conversation before it, if another one begins."""
        conversation = next((record[key] for key in CONVERSATIONS if key in record), None)
        if conversation != self._conversation:
            yield from self.ended()
            self._conversation = conversation
        self._place = self._place or place
        side = speaker_of(record)
        if side is SpeakerSide.STUDENT:
            self._said.append(said_in(record))
        elif side is SpeakerSide.TUTOR:
            for answer in answers_of(record):
                turn = turn_of({"student_message": "\n\n".join(self._said), **answer}, record)
                self._turns.append(turn)
                self._said = []

    def ended(self) -> Iterator[LoggedRun]:
        """Yield the conversation, if a tutor said something in it."""
        if self._turns:
            known = isinstance(self._conversation, str | int)
            sample = str(self._conversation) if known else ""
            yield LoggedRun(self._place, self._model, sample, self._turns)
        self._place, self._conversation, self._said, self._turns = "", None, [], []
