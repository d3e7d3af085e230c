"""Reads the logs of llm: its database, opened read-only, or the array of `llm logs --json`."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from socratic_bench.errors import InvalidInput
from socratic_bench.scoring.exchange import Status
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
from socratic_runner.models.stop_reasons import Ended, how_it_ended

_MOST_MESSAGES: Final = 10_000
"""The most messages above an answer: a circle of parents ends there."""


class _Call(NamedTuple):
    """One answer with its conversation and its model."""

    conversation: str
    model: str
    system: str | None
    at: str | None
    turn: LoggedTurn


def read_database(path: Path, facts: LogFacts) -> LogRows:
    """Yield the conversations of a `logs.db`, of the layouts before and from llm 0.32 on.

    Raises InvalidInput for a database that cannot be read.
    """
    try:
        with _opened(path) as database:
            tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master")}
            for table, calls in (("responses", _old_calls), ("turns", _new_calls)):
                if table in tables:
                    yield from _runs(f"{path} {table}", calls(database))
    except (sqlite3.Error, OSError) as error:
        raise InvalidInput(f"{path} is the database of llm, and cannot be read: {error}") from None


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database without writing beside it; what is in its `-wal` counts."""
    with TemporaryDirectory() as folder:
        log = path.with_name(f"{path.name}-wal")
        if log.exists():
            copy = Path(shutil.copy(path, Path(folder) / "logs.db"))
            shutil.copy(log, Path(folder) / "logs.db-wal")
            address = f"{copy.as_uri()}?mode=rw"
        else:
            address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(address, uri=True)) as database:
            database.execute("PRAGMA trusted_schema = OFF")
            database.text_factory = lambda text: text.decode(errors="replace")
            database.row_factory = sqlite3.Row
            yield database


def _old_calls(database: sqlite3.Connection) -> Iterator[_Call]:
    for row in database.execute("SELECT * FROM responses ORDER BY conversation_id, id"):
        yield _call({key: row[key] for key in row.keys()}, _old_prompt(database, row))  # noqa: SIM118


def _old_prompt(database: sqlite3.Connection, row: sqlite3.Row) -> str:
    fragments = database.execute(
        "SELECT content FROM prompt_fragments JOIN fragments ON fragments.id = fragment_id "
        'WHERE response_id = ? ORDER BY "order"',
        (row["id"],),
    )
    return "\n".join([*(each[0] for each in fragments), row["prompt"] or ""]).strip("\n")


def _call(row: Mapping[str, Any], prompt: str) -> _Call:
    """Return a call of the layout before 0.32, or of `llm logs --json`."""
    return _Call(
        str(row.get("conversation_id") or row.get("id")),
        text_or_none(row.get("model")) or "unknown",
        row["system"] if isinstance(row.get("system"), str) else None,
        row.get("datetime_utc"),
        _turn(row, prompt, str(row.get("response") or "")),
    )


def _turn(row: Mapping[str, Any], student: str, text: str) -> LoggedTurn:
    written = whole_number(row.get("output_tokens")) or None
    details = _json(row.get("token_details"))
    thought = whole_number(member(details, "completion_tokens_details", "reasoning_tokens"))
    thought = thought or whole_number(member(details, "reasoning_tokens")) or 0
    reason = _reason(_json(row.get("response_json")))
    ended = how_it_ended(reason) if reason else Ended(Status.OK)
    known = written is not None and thought <= written
    return LoggedTurn(
        student,
        text,
        ended.status if isinstance(ended, Ended) else Status.ERROR,
        (written or 0) - thought if known else None,
        thought if known else 0,
        whole_number(row.get("input_tokens")) or None,
        whole_number(row.get("duration_ms")),
        reason,
        text_or_none(row.get("resolved_model")),
    )


def _json(value: object) -> object:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return None


def _reason(reply: object) -> str | None:
    choices = member(reply, "choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return text_or_none(member(reply, "finish_reason")) or text_or_none(
        member(first, "finish_reason")
    )


def _new_calls(database: sqlite3.Connection) -> Iterator[_Call]:
    for row in database.execute("SELECT * FROM turns ORDER BY thread_id, id"):
        kept = {key: row[key] for key in row.keys()}  # noqa: SIM118
        asked, system, above = list[str](), None, kept["tip_message_hash"]
        for number in range(_MOST_MESSAGES):
            message = database.execute(
                "SELECT role, parent_hash FROM messages WHERE hash = ?", (above,)
            ).fetchone()
            if message is None:
                break
            if message["role"] == "system":
                system = _text(database, above)
            elif message["role"] == "user" and len(asked) == number - 1:
                asked.append(_text(database, above))
            above = message["parent_hash"]
        student = "\n\n".join(reversed(asked))
        answer = _turn(kept, student, _text(database, kept["tip_message_hash"]))
        model = text_or_none(kept["model"]) or "unknown"
        yield _Call(str(kept["thread_id"]), model, system or "", kept["datetime_utc"], answer)


def _text(database: sqlite3.Connection, message: str) -> str:
    """Return what a message says; a text that used fragments refers to them."""
    parts = database.execute(
        "SELECT text, payload FROM parts WHERE message_hash = ? AND type = 'text' "
        "ORDER BY position",
        (message,),
    ).fetchall()
    said = []
    for text, payload in parts:
        pieces = member(_json(payload), "text_ref") if text is None else [{"literal": text}]
        for piece in pieces if isinstance(pieces, list) else ():
            if isinstance(literal := member(piece, "literal"), str):
                said.append(literal)
                continue
            fragment = database.execute(
                "SELECT content FROM fragments WHERE id = ?", (member(piece, "fragment"),)
            ).fetchone()
            said.append(fragment[0] if fragment else "")
    return "".join(said)


def read_array(path: Path, facts: LogFacts) -> LogRows:
    """Yield the conversations of the array that `llm logs --json` prints."""
    calls: list[_Call] = []
    for found in documents(path):
        if isinstance(found, Unread):
            yield found
            continue
        place, record = found
        if isinstance(record, Mapping) and isinstance(record.get("response"), str):
            calls.append(_call(record, str(record.get("prompt") or "")))
        else:
            yield Unread(place, "has no `response`")
    yield from _runs(str(path), iter(sorted(calls, key=lambda call: call.conversation)))


def _runs(where: str, calls: Iterator[_Call]) -> Iterator[LoggedRun]:
    """Yield a run for each conversation with each model; its calls follow each other."""
    for (conversation, model), several in groupby(calls, key=lambda each: each[:2]):
        its = list(several)
        yield LoggedRun(
            f"{where} {conversation}",
            model,
            conversation,
            [each.turn for each in its],
            system_prompt=its[0].system,
            at=instant(its[0].at),
        )
