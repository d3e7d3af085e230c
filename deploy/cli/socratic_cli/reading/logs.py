"""Finds the reader of a file that another tool wrote: by its content, never by its name alone."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final

from socratic_bench.errors import InvalidInput
from socratic_cli.reading import chat_exports as exports
from socratic_cli.reading import inspect_log, llm_logs, promptfoo, tool_logs
from socratic_cli.reading import tutoring_sets as sets
from socratic_cli.reading.answers import is_promptfoo_row
from socratic_cli.reading.files import START_BYTES, NoDocuments
from socratic_cli.reading.foreign_files import ForeignKind, binary_kind, foreign_record, tagged_kind
from socratic_cli.reading.json_stream import JsonStream, reader
from socratic_cli.reading.logged_runs import LogFacts, LogReader, LogRows
from socratic_cli.reading.record_files import read_records

_KEYS_READ: Final = 60
"""The most keys of the first object that are looked at."""

_READERS: Final[dict[str, tuple[str, str, LogReader]]] = {
    "inspect-eval": ("Inspect AI", "inspect", inspect_log.read_eval),
    "inspect-json": ("Inspect AI", "inspect", inspect_log.read_json),
    "promptfoo": ("promptfoo", "promptfoo", promptfoo.read_document),
    "promptfoo-lines": ("promptfoo", "promptfoo", promptfoo.read_lines),
    "lm-eval": ("lm-evaluation-harness", "lm-eval", tool_logs.read_lm_eval),
    "llm-db": ("llm", "llm", llm_logs.read_database),
    "llm-json": ("llm", "llm", llm_logs.read_array),
    "langfuse": ("Langfuse", "langfuse", tool_logs.read_langfuse),
    "chatgpt": ("ChatGPT", "chat", reader(exports.chats(exports.chatgpt, "chatgpt"))),
    "claude": ("Claude", "chat", reader(exports.chats(exports.claude, "claude"))),
    "webui": ("Open WebUI", "chat", reader(exports.chats(exports.open_webui, "open-webui"))),
    "librechat": ("LibreChat", "chat", reader(exports.chats(exports.librechat, "librechat"))),
    "chatbot-ui": ("chatbot-ui", "chat", reader(exports.chatbot_ui)),
    "mathdial": ("MathDial", "mathdial", sets.read_mathdial),
    "talkmoves": ("TalkMoves", "talkmoves", sets.read_talkmoves),
    "debugging": ("Socratic debugging", "debugging", sets.read_debugging),
    "mrbench": ("MRBench", "mrbench", reader(sets.mrbench)),
    "cima": ("CIMA", "cima", reader(sets.cima)),
    "bridge": ("Bridge", "bridge", reader(sets.bridge)),
    "socrateach": ("SocraTeach", "socrateach", reader(sets.socrateach)),
    "mathtutorbench": ("MathTutorBench", "mathtutorbench", reader(sets.mathtutorbench)),
    "interactions": ("dialogues with simulated students", "dialogues", reader(sets.interactions)),
    "hh-rlhf": ("HH-RLHF", "hh-rlhf", reader(sets.hh_rlhf)),
    "oasst": ("OpenAssistant", "oasst", reader(sets.open_assistant)),
}
"""By the reader of a ForeignKind: the tool, its part of a model's id, and the function."""

_PROMPTFOO_ROWS: Final = ForeignKind("rows of promptfoo", reader="promptfoo-lines")
_LLM_ARRAY: Final = ForeignKind("logs of llm", reader="llm-json")
_LANGFUSE: Final = ForeignKind("an export of Langfuse", reader="langfuse")


class Log:
    """A file that another tool wrote."""

    def __init__(self, path: Path, what: str, tool: str, slug: str, reader: LogReader) -> None:
        self.path = path
        self.what = what
        """What the file is, in words."""

        self.facts = LogFacts(tool, slug)
        """Complete once `rows` has ended."""

        self._reader = reader

    def rows(self) -> LogRows:
        """Yield the conversations of the file, from its beginning."""
        return self._reader(self.path, self.facts)


def opened_records(path: Path) -> Log:
    """Return a file of records as a log whose tool is unknown.

    Raises InvalidInput for what is no file: a log is read twice.
    """
    if not path.is_file():
        what = "is no regular file, and import reads a file twice"
        raise InvalidInput(f"{path} {what if path.exists() else 'does not exist'}")
    return Log(path, "a file of records", "a file of answers", "file", read_records)


def opened_log(path: Path) -> Log | None:
    """Return the log in a file; None for one that is not of a tool that is known.

    Raises InvalidInput for a file that cannot be read.
    """
    try:
        kind = _kind(path)
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read: {error.strerror}") from None
    if kind is None or not kind.reader:
        return None
    return Log(path, kind.what, *_READERS[kind.reader])


def _kind(path: Path) -> ForeignKind | None:
    if not path.is_file():
        return None
    with path.open("rb") as file:
        start = file.read(START_BYTES)
        if (kind := binary_kind(str(path), start)) is not None:
            return kind
        file.seek(0)
        if start.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
            return _of_json(JsonStream(file))
        if path.suffix.lower() in {".csv", ".tsv"}:
            separator = "\t" if path.suffix.lower() == ".tsv" else ","
            rows = csv.DictReader(TextIOWrapper(file, "utf-8-sig"), delimiter=separator)
            try:
                return foreign_record(next(rows, {}))
            except (csv.Error, UnicodeError):
                return None
        return tagged_kind(start.decode(errors="replace"))


def _of_json(text: JsonStream) -> ForeignKind | None:
    try:
        if text.peek() == "[":
            for _ in text.items():
                record = text.value()
                return _of_record(record) if isinstance(record, Mapping) else None
            return None
        record = dict[str, Any]()
        for key in text.members():
            # The key may tell before its value, which may be the whole log.
            record[key] = None
            if (kind := _of_record(record)) is not None:
                return kind
            record[key] = text.value()
            if (kind := _of_record(record)) is not None:
                return kind
            if len(record) > _KEYS_READ:
                break
    except NoDocuments:
        pass
    return None


def _of_record(record: Mapping[str, Any]) -> ForeignKind | None:
    """Return what a file is whose first object begins with these members."""
    if is_promptfoo_row(record):
        return _PROMPTFOO_ROWS
    if {"response", "conversation_id", "duration_ms"} <= record.keys():
        return _LLM_ARRAY
    first = next(iter(record.values()), None)
    page = record.get("data")
    item = page[0] if isinstance(page, list) and page else record
    if isinstance(item, Mapping) and {"traceId", "input", "output"} <= item.keys():
        return _LANGFUSE
    if len(record) == 1 and isinstance(first, Mapping) and "dialogues" in first:
        return foreign_record(first)
    return foreign_record(record)
