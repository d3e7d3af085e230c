"""Scores texts and transcripts while reading them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from socratic_bench.errors import BrokenProfile, InvalidInput
from socratic_bench.invalid_values import shown
from socratic_bench.scoring.legacy import is_legacy, on_unit_scale
from socratic_bench.scoring.profile import OVERALL
from socratic_bench.scoring.profiles import profile_named
from socratic_bench.scoring.score import Score
from socratic_bench.scoring.score import score as score_text
from socratic_cli.reading.answers import answers_of, is_plain, names_speaker, said_in
from socratic_cli.reading.conversations import (
    answer_key_of,
    earlier_turns_of,
    student_message_of,
)
from socratic_cli.reading.files import TEXT_KEYS, Entry, entries, keys_named
from socratic_cli.reading.foreign_files import foreign_record, no_answer
from socratic_cli.reading.logged_runs import Unread
from socratic_cli.reading.logs import Log
from socratic_cli.reading.messages import SpeakerSide, speaker_of
from socratic_cli.reading.record_files import CONVERSATIONS

CONVERTED = "converted"
"""The status of a record with the predecessor's scores, converted to the scale 0 to 1."""


@dataclass(frozen=True, slots=True)
class ScoredLine:
    """One line, item or row of the input with its outcome."""

    number: int
    text: str
    figures: dict[str, Any]
    """Ready for JSON: the shape of a score, or `error` in place of figures; the `id` of the
    record comes first."""

    problem: str | None = None

    @property
    def scored(self) -> bool:
        """True if it was scored here, and not converted from an older score."""
        return self.problem is None and self.figures["status"] != CONVERTED


@dataclass(slots=True)
class UnscoredRows:
    """The rows that nobody scores, because the tutor does not say them."""

    students: int = 0
    """Rows of a student."""

    others: int = 0
    """Rows of a system or a tool."""

    silent: int = 0
    """Rows of a tutor without a text, or with a weight of 0."""

    def __str__(self) -> str:
        counts = {
            "of a student": self.students,
            "of a system or a tool": self.others,
            "of a tutor without an answer": self.silent,
        }
        whole = sum(counts.values())
        rows = "1 row is" if whole == 1 else f"{whole:,} rows are"
        kinds = (f"{count:,} {whose}" for whose, count in counts.items() if count)
        return f"{rows} left out: {', '.join(kinds)}"

    def __bool__(self) -> bool:
        return bool(self.students or self.others or self.silent)


def scored_lines(
    lines: Iterable[bytes], *, name: str, whole: bool, profile: str, left_out: UnscoredRows
) -> Iterator[ScoredLine]:
    """Score every response of a file, in order, and count in `left_out` the rows of others.

    Raises InvalidInput for an unreadable file, and for one that is no list of answers.
    """
    asked = _Asked()
    answered = False
    for entry in entries(lines, name=name, whole=whole):
        for line in _scored(entry, profile, asked, left_out):
            answered = True
            yield line
    if left_out and not answered:
        raise InvalidInput(f"{name} has no answer of a tutor: {left_out}")


def scored_log(log: Log, profile: str) -> Iterator[ScoredLine]:
    """Score every answer in the log of another tool. Raises InvalidInput for an unreadable one."""
    number = 0
    for row in log.rows():
        if isinstance(row, Unread):
            number += 1
            yield _failed(Entry(number, row.place, None), "", profile, row.problem, None)
            continue
        for record in row.records():
            number += 1
            yield _scored_record(Entry(number, row.place, record), record, profile)
    if not number:
        raise InvalidInput(f"{log.path} is {log.what}, and has no answer of a tutor")


def _scored(
    entry: Entry, profile: str, asked: _Asked, left_out: UnscoredRows
) -> Iterable[ScoredLine]:
    if entry.problem is not None or entry.content is None:
        problem = entry.problem or "cannot be read"
        return (_failed(entry, "", profile, problem, entry.content),)
    if isinstance(entry.content, str):
        return (_scored_text(entry, entry.content, profile),)
    if is_plain(entry.content):
        return (_scored_record(entry, entry.content, profile),)
    return _scored_answers(entry, entry.content, profile, asked, left_out)


class _Asked:
    """What students said in the rows since the last answer."""

    def __init__(self) -> None:
        self._said: list[str] = []
        self._conversation: object = None

    def add(self, record: Mapping[str, Any]) -> None:
        """Take a student's row."""
        self._go_on(record)
        if said := said_in(record):
            self._said.append(said)

    def take(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields that a tutor's row gets from the student's rows before it."""
        self._go_on(record)
        said, self._said = self._said, []
        return {"student_message": "\n\n".join(said)} if said else {}

    def _go_on(self, record: Mapping[str, Any]) -> None:
        conversation = next((record[key] for key in CONVERSATIONS if key in record), None)
        if conversation != self._conversation:
            self._said = []
        self._conversation = conversation


def _scored_answers(
    entry: Entry, record: Mapping[str, Any], profile: str, asked: _Asked, left_out: UnscoredRows
) -> Iterator[ScoredLine]:
    """Score the answers of a row that names its speaker, or has another shape than `text`."""
    try:
        side = speaker_of(record) if names_speaker(record) else None
        if side is SpeakerSide.STUDENT:
            asked.add(record)
            left_out.students += 1
            return
        if side is SpeakerSide.NEITHER:
            left_out.others += 1
            return
        answers = answers_of(record)
    except (TypeError, ValueError) as error:
        yield _failed(entry, "", profile, str(error), record)
        return
    if not answers:
        left_out.silent += 1
    before = asked.take(record) if side is SpeakerSide.TUTOR else {}
    for answer in answers:
        yield _scored_record(entry, {**before, **answer}, profile)


def _scored_text(entry: Entry, text: str, profile: str) -> ScoredLine:
    try:
        return ScoredLine(entry.number, text, score_text(text, profile=profile).as_dict())
    except BrokenProfile as error:
        return _failed(entry, text, profile, str(error), None)


def _scored_record(entry: Entry, record: Mapping[str, Any], profile: str) -> ScoredLine:
    text = ""
    try:
        found = next((record[key] for key in TEXT_KEYS if key in record), None)
        if found is None and is_legacy(record):
            return ScoredLine(entry.number, "", _named(record, _converted(record)))
        text = _text(found, record)
        figures = _score_of(record, text, profile).as_dict()
        return ScoredLine(entry.number, text, _named(record, figures))
    except (TypeError, ValueError, BrokenProfile) as error:
        return _failed(entry, text, profile, str(error), record)


def _text(found: object, record: Mapping[str, Any]) -> str:
    if isinstance(found, str):
        if (wrong := no_answer(found)) is not None:
            raise ValueError(f"{wrong}, no answer: give each answer as a row of its own")
        return found
    if (foreign := foreign_record(record)) is not None:
        raise ValueError(f"this is {foreign}")
    if wrong := next((key for key in TEXT_KEYS if key in record), None):
        raise TypeError(f"`{wrong}` must be a string, not {shown(record[wrong])}")
    raise TypeError(f"needs `text`, `response` or `output`, a string; {keys_named(record)}")


def _named(record: Mapping[str, Any], figures: dict[str, Any]) -> dict[str, Any]:
    """Return the figures, after the record's id if it has one that JSON can hold in a line."""
    found, epoch = record.get("id"), record.get("epoch")
    if not isinstance(found, str | int):
        return figures
    repeat = {"epoch": epoch} if isinstance(epoch, int) else {}
    return {"id": found, **repeat, **figures}


def _converted(record: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the predecessor's scores to the present scale. Raises ValueError for invalid ones."""
    scores = {key: value for key, value in record.items() if key != "id"}
    try:
        converted = {**on_unit_scale(scores), "status": CONVERTED}
        json.dumps(converted, allow_nan=False)
    except OverflowError:
        raise ValueError("a score is far above 100") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return converted


def _score_of(record: Mapping[str, Any], text: str, profile: str) -> Score:
    tokens = record.get("output_tokens")
    if tokens is not None and (isinstance(tokens, bool) or not isinstance(tokens, int | float)):
        raise ValueError(f"`output_tokens` must be a number, not {tokens!r}")
    dimension = record.get("dimension")
    return score_text(
        text,
        output_tokens=tokens,
        status=record.get("status", "ok"),
        dimension=dimension if isinstance(dimension, str) else None,
        student_message=student_message_of(record),
        earlier_turns=earlier_turns_of(record),
        answer_key=answer_key_of(record),
        profile=profile,
    )


def _failed(
    entry: Entry, text: str, profile: str, wrong: str, found: str | Mapping[str, Any] | None
) -> ScoredLine:
    problem = f"{entry.place}: {wrong}"
    unscored = dict.fromkeys((*profile_named(profile).vectors, OVERALL))
    figures = {**unscored, "status": "error", "error": problem, "evidence": None}
    record = found if isinstance(found, Mapping) else {}
    return ScoredLine(entry.number, text, _named(record, figures), problem)
