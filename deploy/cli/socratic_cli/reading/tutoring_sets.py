"""Reads published sets of tutoring dialogues, each tutor of which is a model of its own."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from socratic_bench.errors import InvalidInput
from socratic_bench.planning.config_file.tables import LONGEST_FIELD
from socratic_cli.reading.conversations import answered_in
from socratic_cli.reading.files import MOST_BYTES
from socratic_cli.reading.json_stream import reader, rows_of
from socratic_cli.reading.logged_runs import (
    LogFacts,
    LoggedRun,
    LoggedTurn,
    LogRows,
    member,
    text_or_none,
)
from socratic_cli.reading.messages import SpeakerSide, side_of


def read_mathdial(path: Path, facts: LogFacts) -> LogRows:
    """Yield the dialogues of MathDial, as CSV or JSON Lines."""
    if path.suffix.lower() != ".csv":
        yield from reader(mathdial)(path, facts)
        return
    for number, row in enumerate(_rows(path), start=1):
        yield from rows_of(f"{path} row {number}", row, mathdial)


def read_talkmoves(path: Path, facts: LogFacts) -> LogRows:
    """Yield the lesson of a sheet of TalkMoves, saved as CSV: a row is a sentence of a turn."""
    rows = list(_rows(path))
    tutors = {row.get("Speaker") for row in rows if row.get("Teacher Tag")}
    messages = []
    for (_, speaker), sentences in groupby(rows, lambda row: (row.get("Turn"), row.get("Speaker"))):
        is_tutor = speaker in tutors or side_of(speaker or "") is SpeakerSide.TUTOR
        said = [(row.get("Sentence") or "").strip() for row in sentences]
        messages.append(_message(" ".join(filter(None, said)), is_tutor=is_tutor))
    yield from _dialogue(str(path), "teacher", path.stem, messages)


def _rows(path: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of a table. Raises InvalidInput for one that is no CSV."""
    csv.field_size_limit(LONGEST_FIELD)
    separator = "\t" if path.suffix.lower() == ".tsv" else ","
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            yield from csv.DictReader(file, strict=True, delimiter=separator)
    except csv.Error as error:
        raise InvalidInput(f"{path}: not valid CSV: {error}") from None


_DIALOGUE: Final = re.compile(r"<dialogue>(.*?)(?:</dialogue>|\Z)", re.DOTALL | re.IGNORECASE)
_SAID: Final = re.compile(r"(?P<who>User|Assistant)\s*:\s*(?P<text>.*)")


def read_debugging(path: Path, facts: LogFacts) -> LogRows:
    """Yield the dialogues of a file of Socratic debugging, without the alternatives below turns."""
    with path.open(encoding="utf-8", errors="replace") as file:
        text = file.read(MOST_BYTES)
    for number, dialogue in enumerate(_DIALOGUE.findall(text), start=1):
        messages: list[dict[str, str]] = []
        for line in dialogue.splitlines():
            if line.startswith("\t") or line.lstrip().startswith("<alt>"):
                continue
            if said := _SAID.match(line.strip()):
                messages.append(_message(said["text"], is_tutor=said["who"] == "Assistant"))
            elif messages and line.strip():
                messages[-1]["content"] += f"\n{line.rstrip()}"
        name = path.stem if number == 1 else f"{path.stem} {number}"
        yield from _dialogue(f"{path} dialogue {number}", "assistant", name, messages)


_MOVE: Final = re.compile(r"^\s*\((?:generic|focus|probing|telling)\)\s*")


def mathdial(place: str, record: Mapping[str, Any]) -> Iterator[LoggedRun]:
    """Yield a dialogue whose turns `|EOM|` parts: `Teacher: (move)text`, or a student's."""
    messages = []
    for said in str(record["conversation"]).split("|EOM|"):
        name, colon, text = said.partition(":")
        if not colon:
            continue
        is_tutor = side_of(name) is SpeakerSide.TUTOR
        spoken = _MOVE.sub("", text) if is_tutor else text
        if spoken.strip():
            messages.append(_message(spoken.strip(), is_tutor=is_tutor))
    yield from _dialogue(place, "teacher", record.get("qid"), messages)


def _message(text: str, *, is_tutor: bool) -> dict[str, str]:
    return {"role": "assistant" if is_tutor else "user", "content": text}


def _dialogue(
    place: str, model: str, name: object, messages: Sequence[Mapping[str, str]], dimension: str = ""
) -> Iterator[LoggedRun]:
    turns = [LoggedTurn(before.student, said.text) for said, before in answered_in(list(messages))]
    sample = str(name) if isinstance(name, str | int) else ""
    if turns:
        yield LoggedRun(place, model, sample, turns, dimension=dimension)


_LABEL: Final = re.compile(r"(?:^|\n)[\s\u00a0]*(?P<who>Tutor|Student|Teacher)[\s\u00a0]*:")


def mrbench(place: str, record: Mapping[str, Any]) -> Iterator[LoggedRun]:
    """Yield the answers that several tutors give to one dialogue."""
    answers = dict(record.get("anno_llm_responses", record.get("tutor_responses")) or {})
    history = str(record.get("conversation_history", ""))
    asked = _last_of_student(history)
    name = str(record.get("conversation_id", ""))
    dimension = text_or_none(record.get("Data"), 60) or ""
    for tutor, answer in answers.items():
        text = member(answer, "response")
        if isinstance(text, str):
            yield LoggedRun(place, tutor, name, [LoggedTurn(asked, text)], dimension=dimension)
        else:
            raise ValueError(f"the answer of {tutor[:40]!r} has no `response`")  # noqa: TRY004


def _last_of_student(history: str) -> str:
    """Return what the student says last in a history in one string; all of it without names."""
    labels = list(_LABEL.finditer(history))
    for number, label in reversed(list(enumerate(labels))):
        if label["who"] == "Student":
            end = labels[number + 1].start() if number + 1 < len(labels) else len(history)
            return history[label.end() : end].strip()
    return history.strip()


def cima(place: str, record: Mapping[str, Any]) -> Iterator[LoggedRun]:
    """Yield the alternative answers of each exercise of CIMA, as repeats of one tutor."""
    for kind in ("prepDataset", "shapeDataset"):
        exercises = record.get(kind)
        for number, each in exercises.items() if isinstance(exercises, Mapping) else ():
            said = [text for text in member(each, "past_convo") or () if isinstance(text, str)]
            # The tutor begins, and the sides alternate.
            asked = said[-1] if said and len(said) % 2 == 0 else ""
            for text in member(each, "tutorResponses") or ():
                if isinstance(text, str) and text.strip():
                    where = f"{place} {kind} {number}"
                    turns = [LoggedTurn(asked, text)]
                    yield LoggedRun(where, "tutor", f"{kind} {number}", turns, dimension=kind)


def bridge(place: str, record: Mapping[str, Any]) -> Iterator[LoggedRun]:
    """Yield what was said in a moment of Bridge, and what an expert would have said."""
    history = record.get("c_h")
    said = [each for each in history if isinstance(each, Mapping)] if history else []
    asked: list[str] = []
    for each in reversed(said):
        if side_of(str(each.get("user"))) is not SpeakerSide.STUDENT:
            break
        asked.append(str(each.get("text", "")))
    student = "\n".join(reversed(asked))
    for key, model in (("c_r", "tutor"), ("c_r_", "expert")):
        answer = record.get(key)
        texts = [str(member(each, "text") or "") for each in answer or ()]
        if text := "\n".join(filter(None, texts)):
            name = str(record.get("c_id", ""))
            yield LoggedRun(place, model, name, [LoggedTurn(student, text)])


def socrateach(place: str, record: Mapping[str, Any]) -> Iterator[LoggedRun]:
    """Yield the dialogues of each problem of SocraTeach, where `system` is the teacher."""
    for problem, each in record.items():
        dialogues = member(each, "dialogues")
        for number, turns in dialogues.items() if isinstance(dialogues, Mapping) else ():
            question = member(each, "question")
            messages = [_message(question, is_tutor=False)] if isinstance(question, str) else []
            for turn in turns if isinstance(turns, list) else ():
                messages += [
                    _message(text, is_tutor=key == "system")
                    for key in ("system", "user")
                    if isinstance(text := member(turn, key), str) and text.strip()
                ]
            where = f"{place} {problem} {number}"
            yield from _dialogue(where, "teacher", f"{problem} {number}", messages)


def mathtutorbench(place: str, record: Mapping[str, Any]) -> Iterator[LoggedRun]:
    """Yield a dialogue of MathTutorBench that has a turn of its teacher."""
    messages = _spoken(record["dialog_history"], "user", "text")
    yield from _dialogue(place, "teacher", record.get("id"), messages)


def _spoken(history: object, who: str, said: str) -> list[dict[str, str]]:
    """Return the messages of a history, whose fields `who` and `said` name speaker and text."""
    return [
        _message(str(each.get(said, "")), is_tutor=side_of(str(each.get(who))) is SpeakerSide.TUTOR)
        for each in (history if isinstance(history, list) else ())
        if isinstance(each, Mapping)
    ]


def interactions(place: str, record: Mapping[str, Any]) -> Iterator[LoggedRun]:
    """Yield dialogues with simulated students: `interactions` with a `chat_history` each."""
    model = text_or_none(member(record, "metadata", "model")) or "teacher"
    for number, each in enumerate(record["interactions"], start=1):
        messages = _spoken(member(each, "chat_history"), "role", "content")
        name = member(each, "id") or f"dialogue {number}"
        yield from _dialogue(f"{place} dialogue {number}", model, name, messages)


def hh_rlhf(place: str, record: Mapping[str, Any]) -> Iterator[LoggedRun]:
    """Yield the chosen and the rejected dialogue of a pair, each of a tutor of its own."""
    for key in ("chosen", "rejected"):
        parts = re.split(r"\n\n(Human|Assistant):", str(record[key]))
        messages = [
            _message(text.strip(), is_tutor=who == "Assistant")
            for who, text in zip(parts[1::2], parts[2::2], strict=False)
            if text.strip()
        ]
        asked = next((each["content"] for each in messages if each["role"] == "user"), "")
        yield from _dialogue(place, key, text_or_none(asked, 80), messages)


def open_assistant(place: str, record: Mapping[str, Any]) -> Iterator[LoggedRun]:
    """Yield a tree of messages, along the first replies."""
    messages: list[dict[str, str]] = []
    node: object = record["prompt"]
    while isinstance(node, Mapping):
        if isinstance(text := node.get("text"), str):
            messages.append(_message(text, is_tutor=node.get("role") == "assistant"))
        replies = node.get("replies")
        node = replies[0] if isinstance(replies, list) and replies else None
    yield from _dialogue(place, "assistant", record.get("message_tree_id"), messages)
