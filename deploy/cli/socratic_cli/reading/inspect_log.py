"""Reads logs of Inspect AI: `.eval`, a zip archive with a member a sample, or one JSON document."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from socratic_bench.errors import InvalidInput, MissingExtra
from socratic_bench.scoring.exchange import EarlierTurn, Status
from socratic_cli.reading.conversations import answered_in, system_prompt_of
from socratic_cli.reading.files import MOST_BYTES, NoDocuments
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
from socratic_runner.models.stop_reasons import Ended, how_it_ended

_ZSTANDARD: Final = 93
"""The method of a zip member that Python before 3.14 cannot read by itself."""

_NO_REPLY: Final = frozenset({"model_length", "content_filter"})
"""Stop reasons that, without a usage, stand for a refused call: its words are no answer."""

_START: Final = "_journal/start.json"
_HEADER: Final = "header.json"
_MOST_RATIO: Final = 500
"""How many times larger than its file a log may be: text shrinks to a tenth or so."""

_HARMLESS: Final = 8 * 2**20
"""Bytes that any archive may unpack to."""


def read_eval(path: Path, facts: LogFacts) -> LogRows:
    """Yield the runs of an `.eval` log.

    Raises InvalidInput for a damaged archive, MissingExtra for one in Zstandard without the extra.
    """
    try:
        with _opened(path) as archive:
            names = set(archive.namelist())
            _refuse_bomb(path, archive)
            header = _header(path, archive, _HEADER if _HEADER in names else _START)
            _take_header(facts, {"status": "started", **header})
            model = _model(header)
            for name in archive.namelist():
                if name.startswith("samples/") and name.endswith(".json"):
                    yield _one_member(path, archive, name, model, header)
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise InvalidInput(f"{path} is a damaged log of Inspect AI: {error}") from None


def _header(path: Path, archive: zipfile.ZipFile, name: str) -> Mapping[str, Any]:
    try:
        header = _member(archive, name)
    except (ValueError, KeyError) as error:
        raise InvalidInput(f"{path} is a log of Inspect AI without a header: {error}") from None
    if not isinstance(header, Mapping):
        raise InvalidInput(f"{path} is a log of Inspect AI whose header is no object")
    return header


def _opened(path: Path) -> zipfile.ZipFile:
    archive = zipfile.ZipFile(path)
    if all(each.compress_type != _ZSTANDARD for each in archive.infolist()):
        return archive
    archive.close()
    if hasattr(zipfile, "ZIP_ZSTANDARD"):
        return zipfile.ZipFile(path)
    try:
        opened: zipfile.ZipFile = import_module("backports.zstd.zipfile").ZipFile(path)
    except ImportError:
        raise MissingExtra(
            f"{path} is a log of Inspect AI in Zstandard, which needs backports.zstd: run "
            "pip install 'socratic-ai-bench[inspect]', or `inspect log convert FILE --to json "
            "--output-dir DIR`"
        ) from None
    return opened


def _refuse_bomb(path: Path, archive: zipfile.ZipFile) -> None:
    """Raise InvalidInput for an archive whose members are together far larger than it."""
    whole = sum(each.file_size for each in archive.infolist())
    if whole > _HARMLESS and whole > _MOST_RATIO * path.stat().st_size:
        raise InvalidInput(f"{path} is no log that can be read: it unpacks to {whole:,} bytes")


def _member(archive: zipfile.ZipFile, name: str) -> Any:
    with archive.open(name) as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise NoDocuments(f"it has more than {MOST_BYTES // 2**20} MB")
    try:
        return json.loads(content.decode(errors="replace"))
    except RecursionError:
        raise NoDocuments("nested too deeply") from None


def _one_member(
    path: Path, archive: zipfile.ZipFile, name: str, model: str, header: Mapping[str, Any]
) -> LoggedRun | Unread:
    place = f"{path} {name}"
    try:
        return _run(place, _member(archive, name), model, header)
    except (ValueError, TypeError, zipfile.BadZipFile, EOFError, OSError, KeyError) as error:
        return Unread(place, f"cannot be read: {error}")


def read_json(path: Path, facts: LogFacts) -> LogRows:
    """Yield the runs of a log in JSON. A log that breaks off has the runs before that."""
    with path.open("rb") as file:
        yield from _document(path, JsonStream(file), facts)


def _document(path: Path, text: JsonStream, facts: LogFacts) -> Iterator[LoggedRun | Unread]:
    header: dict[str, Any] = {}
    number = 0
    try:
        for key in text.members():
            if key == "samples" and text.peek() == "[":
                model = _model(header)
                for number in text.items():
                    yield _one_item(f"{path} sample {number}", text.value(), model, header)
            else:
                value = text.value()
                if key in {"eval", "status", "plan"}:
                    header[key] = value
    except NoDocuments as error:
        yield Unread(f"{path} after sample {number}", str(error))
    _take_header(facts, header)


def _one_item(
    place: str, sample: object, model: str, header: Mapping[str, Any]
) -> LoggedRun | Unread:
    try:
        return _run(place, sample, model, header)
    except (ValueError, TypeError) as error:
        return Unread(place, f"cannot be read: {error}")


def _take_header(facts: LogFacts, header: Mapping[str, Any]) -> None:
    packages = member(header, "eval", "packages")
    facts.version = text_or_none(member(packages, "inspect_ai"), 40)
    facts.created = instant(member(header, "eval", "created"))
    samples = whole_number(member(header, "eval", "dataset", "samples"))
    limit = member(header, "eval", "config", "limit")
    if isinstance(limit, int) and samples is not None:
        samples = min(samples, limit)
    epochs = whole_number(member(header, "eval", "config", "epochs")) or 1
    facts.planned = None if samples is None else samples * epochs
    facts.remarks = []
    if (status := header.get("status")) != "success":
        facts.remarks.append(f"the log's status is {text_or_none(status, 20) or 'unknown'}")


def _model(header: Mapping[str, Any]) -> str:
    return text_or_none(member(header, "eval", "model")) or "unknown"


def _run(place: str, sample: object, model: str, header: Mapping[str, Any]) -> LoggedRun:
    if not isinstance(sample, Mapping):
        raise TypeError("a sample must be an object")
    name = sample.get("id")
    if not isinstance(name, str | int):
        raise TypeError("it has no `id`")
    messages = sample.get("messages")
    replies, given = _replies(sample), _given(sample)
    turns: list[LoggedTurn] = []
    given_turns: tuple[EarlierTurn, ...] = ()
    last: str = _input(sample)
    error = member(sample, "error", "message")
    for said, before in answered_in(messages if isinstance(messages, list) else []):
        if said.message.get("id") in given:
            continue
        if not turns:
            given_turns = tuple(before.earlier)
        turn, failed = _turn(said.text, said.status, before.student, replies, said.message, model)
        turns.append(turn)
        error = error or failed
    final = sample.get("output")
    if not turns and error is None:
        error = text_or_none(member(final, "error"), 500) or "the sample has no answer"
    return LoggedRun(
        place=f"{place} ({name})",
        model=model,
        sample=str(name),
        turns=turns,
        before=given_turns,
        repeat=whole_number(sample.get("epoch")) or 1,
        error=text_or_none(error, 500) or (None if error is None else "the sample failed"),
        asked=last,
        system_prompt=system_prompt_of(sample),
        dimension=text_or_none(member(header, "eval", "task"), 100) or "",
        at=instant(sample.get("completed_at")),
    )


def _turn(
    text: str,
    status: Status | None,
    student: str,
    replies: Mapping[str, Mapping[str, Any]],
    message: Mapping[str, Any],
    model: str,
) -> tuple[LoggedTurn, str | None]:
    """Return an answer, and the words of a failed call that stand in its place."""
    reply = replies.get(str(message.get("id")), {})
    reason = text_or_none(member(reply, "choice", "stop_reason"))
    usage = reply.get("usage")
    if reason in _NO_REPLY and not isinstance(usage, Mapping):
        return LoggedTurn(student, text, Status.ERROR, stop_reason=reason), f"{reason}: {text}"
    if status is None and reason is not None:
        ended = how_it_ended(reason)
        status = ended.status if isinstance(ended, Ended) else Status.ERROR
    counted = usage if isinstance(usage, Mapping) and not model.startswith("mockllm/") else {}
    written = whole_number(counted.get("output_tokens"))
    thought = whole_number(counted.get("reasoning_tokens")) or 0
    whole = whole_number(counted.get("total_tokens"))
    seconds = reply.get("time")
    return (
        LoggedTurn(
            student,
            text,
            status or Status.OK,
            written - thought if written is not None and thought <= written else None,
            thought if written is not None and thought <= written else 0,
            # The input of older versions leaves cached tokens out, or has them: the sum tells.
            whole - written if whole is not None and written is not None else None,
            whole_number(seconds * 1000) if isinstance(seconds, int | float) else None,
            reason,
            text_or_none(reply.get("model")),
        ),
        None,
    )


def _replies(sample: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what is told of each call, by the id of its message."""
    found: dict[str, dict[str, Any]] = {}
    events = sample.get("events")
    outputs = [
        member(event, "output")
        for event in (events if isinstance(events, list) else [])
        if member(event, "event") == "model"
    ]
    for output in (sample.get("output"), *outputs):
        choices = member(output, "choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if (name := member(choice, "message", "id")) is not None:
            told = {key: member(output, key) for key in ("usage", "time", "model")}
            found[str(name)] = {**told, "choice": choice}
    return found


def _given(sample: Mapping[str, Any]) -> set[str]:
    """Return the ids of the answers that the sample's input has: no call gave them."""
    asked = sample.get("input")
    ids = (
        member(each, "id")
        for each in (asked if isinstance(asked, list) else ())
        if member(each, "role") == "assistant"
    )
    return {each for each in ids if isinstance(each, str)}


def _input(sample: Mapping[str, Any]) -> str:
    """Return what the student asked first."""
    asked = sample.get("input")
    if isinstance(asked, str):
        return asked
    said = (
        member(each, "content")
        for each in (asked if isinstance(asked, list) else ())
        if member(each, "role") == "user"
    )
    return "\n\n".join(each for each in said if isinstance(each, str))
