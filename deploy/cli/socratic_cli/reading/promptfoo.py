"""Reads results of promptfoo: one JSON document, or a row per line."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from socratic_bench.domain.identifiers import content_name
from socratic_bench.scoring.exchange import Status
from socratic_cli.reading.answers import is_promptfoo_row, of_promptfoo_row
from socratic_cli.reading.conversations import answered_in, system_prompt_of
from socratic_cli.reading.files import NoDocuments, bounded_lines
from socratic_cli.reading.json_stream import JsonStream
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

_LONGEST_LABEL: Final = 40
"""Characters of a prompt's label."""


class _Row(NamedTuple):
    place: str
    row: object


class _Column(NamedTuple):
    """A column of the results: a prompt for a provider."""

    provider: str
    prompt: str
    """The prompt's label; empty without one."""


def read_document(path: Path, facts: LogFacts) -> LogRows:
    """Yield the runs of a result file in JSON. A file that breaks off has the runs before that."""
    yield from _read(path, facts, _in_document)


def read_lines(path: Path, facts: LogFacts) -> LogRows:
    """Yield the runs of a result file in JSON Lines."""
    yield from _read(path, facts, _in_lines)


def _in_document(path: Path, facts: LogFacts) -> Iterator[_Row | Unread]:
    number = 0
    try:
        with path.open("rb") as file:
            text = JsonStream(file)
            for key in text.members():
                if key != "results" or text.peek() != "{":
                    _take(facts, key, text.value())
                    continue
                for inner in text.members():
                    if inner == "results" and text.peek() == "[":
                        for number in text.items():
                            yield _Row(f"{path} result {number}", text.value())
                    else:
                        _take(facts, inner, text.value())
    except NoDocuments as error:
        yield Unread(f"{path} after result {number}", str(error))


def _take(facts: LogFacts, key: str, value: object) -> None:
    """Keep what a member beside the rows tells of the file."""
    if key == "prompts" and isinstance(value, list):
        facts.planned = len(value)
    elif key == "config":
        tests = member(value, "tests")
        facts.planned = (
            facts.planned * len(tests) if facts.planned and isinstance(tests, list) else None
        )
    elif key == "runtimeOptions" and facts.planned:
        facts.planned *= whole_number(member(value, "repeat")) or 1
    elif key == "timestamp":
        facts.created = instant(value)
    elif key == "metadata":
        facts.version = text_or_none(member(value, "promptfooVersion"), 40)
    elif key == "stats" and isinstance(errors := member(value, "errors"), int) and errors:
        facts.remarks = [f"promptfoo counts {errors:,} error{'s' * (errors != 1)}"]


def _in_lines(path: Path, facts: LogFacts) -> Iterator[_Row | Unread]:
    with path.open("rb") as file:
        for number, line in enumerate(bounded_lines(file), start=1):
            if not line.strip():
                continue
            place = f"{path} line {number}"
            try:
                yield _Row(place, json.loads(line.decode(errors="replace")))
            except (ValueError, RecursionError) as error:
                yield Unread(place, f"not valid JSON: {error}")


def _read(path: Path, facts: LogFacts, rows: Any) -> LogRows:
    """Yield the runs. The rows of one dialogue come together at the end, in the order of tests."""
    models = _models(path, facts, rows)
    names: dict[str, str] = {}
    dialogues: defaultdict[tuple[str, str], list[tuple[int, LoggedRun]]] = defaultdict(list)
    for found in rows(path, facts):
        if isinstance(found, Unread):
            yield found
            continue
        place, row = found
        if not isinstance(row, Mapping) or not is_promptfoo_row(row):
            yield Unread(place, "is no row of promptfoo")
            continue
        try:
            run = _run(place, row, models[_column(row)], names)
        except (TypeError, ValueError) as error:
            yield Unread(place, str(error))
            continue
        conversation = member(row, "testCase", "metadata", "conversationId")
        conversation = conversation or member(row, "metadata", "conversationId")
        if isinstance(conversation, str) and len(run.turns) == 1:
            test = whole_number(row.get("testIdx")) or 0
            dialogues[run.model, conversation].append((test, run))
        else:
            yield run
    for (model, conversation), several in dialogues.items():
        several.sort(key=lambda each: each[0])
        first = several[0][1]
        turns = [turn for _, run in several for turn in run.turns]
        yield LoggedRun(
            first.place,
            model,
            conversation,
            turns,
            first.before,
            system_prompt=first.system_prompt,
            at=first.at,
        )


def _models(path: Path, facts: LogFacts, rows: Any) -> dict[int | None, str]:
    """Return the model of each column, which its prompt tells apart where there are several."""
    columns: dict[int | None, _Column] = {}
    for found in rows(path, facts):
        row = None if isinstance(found, Unread) else found.row
        if isinstance(row, Mapping) and is_promptfoo_row(row):
            columns.setdefault(_column(row), _named(row))
    by_provider: defaultdict[str, list[int | None]] = defaultdict(list)
    for number in sorted(columns, key=lambda each: -1 if each is None else each):
        by_provider[columns[number].provider].append(number)
    names = dict[int | None, str]()
    for provider, numbers in by_provider.items():
        for place, number in enumerate(numbers, start=1):
            prompt = columns[number].prompt or f"prompt {place}"
            names[number] = provider if len(numbers) == 1 else f"{provider} · {prompt}"
    return names


def _column(row: Mapping[str, Any]) -> int | None:
    return whole_number(row.get("promptIdx"))


def _named(row: Mapping[str, Any]) -> _Column:
    provider = row.get("provider")
    label = text_or_none(member(provider, "label")) or text_or_none(member(provider, "id"))
    prompt = text_or_none(member(row, "prompt", "label"), _LONGEST_LABEL + 1) or ""
    # Without a label of its own, a prompt's label is its text.
    is_label = 0 < len(prompt) <= _LONGEST_LABEL and "{{" not in prompt
    name = label or text_or_none(provider) or "unknown"
    return _Column(name, prompt if is_label else "")


def _run(place: str, row: Mapping[str, Any], model: str, names: dict[str, str]) -> LoggedRun:
    raw = member(row, "prompt", "raw")
    chat = _chat(raw)
    answer = of_promptfoo_row(row)
    student = answer.get("student_message", raw if isinstance(raw, str) else "")
    turns, error = _turns(row, answer, student)
    return LoggedRun(
        place=place,
        model=model,
        sample=_sample(row, names),
        turns=turns,
        before=tuple(answer.get("earlier_turns", ())) if len(turns) == 1 else (),
        error=error,
        asked=student,
        system_prompt=None if chat is None else system_prompt_of({"messages": chat}),
        at=instant(row.get("timestamp")),
    )


def _chat(raw: object) -> list[Any] | None:
    if not isinstance(raw, str) or not raw.lstrip().startswith("["):
        return None
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) else None


def _turns(
    row: Mapping[str, Any], answer: Mapping[str, Any], student: str
) -> tuple[list[LoggedTurn], str | None]:
    """Return the answers of a row, and why it failed."""
    response = row.get("response")
    if answer.get("status") is Status.ERROR:
        said = text_or_none(row.get("error"), 500) or text_or_none(member(response, "error"), 500)
        return [], said or "promptfoo kept no answer"
    dialogue = member(row, "metadata", "messages") or member(response, "metadata", "messages")
    if isinstance(dialogue, list):
        return [LoggedTurn(turns.student, said.text) for said, turns in answered_in(dialogue)], None
    usage = member(response, "tokenUsage")
    visible, whole = answer.get("output_tokens"), whole_number(member(usage, "completion"))
    counted = visible is not None and whole is not None
    cached = bool(member(response, "cached"))
    return [
        LoggedTurn(
            student,
            answer["text"],
            answer.get("status", Status.OK),
            visible,
            (whole or 0) - (visible or 0) if counted else 0,
            None if cached else whole_number(member(usage, "prompt")) or None,
            None if cached else whole_number(row.get("latencyMs")),
            text_or_none(member(response, "finishReason")),
        )
    ], None


def _sample(row: Mapping[str, Any], names: dict[str, str]) -> str:
    """Return the test's name: repeats of a test have their own numbers, but the same words."""
    test = [row.get("vars"), member(row, "testCase", "description")]
    key = content_name("test", json.loads(json.dumps(test, default=str)), 32)
    described = text_or_none(member(row, "testCase", "description"), 100)
    test_number = whole_number(row.get("testIdx"))
    unnamed = "" if test_number is None else f"test {test_number}"
    return names.setdefault(key, described or unnamed)
