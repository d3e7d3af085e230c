"""Scores texts and transcripts while reading them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from socratic_bench.errors import BrokenProfile
from socratic_bench.invalid_values import shown
from socratic_bench.scoring.legacy import is_legacy, on_unit_scale
from socratic_bench.scoring.profile import OVERALL
from socratic_bench.scoring.profiles import profile_named
from socratic_bench.scoring.score import Score
from socratic_bench.scoring.score import score as score_text
from socratic_cli.conversations import earlier_turns_of, of_chat, student_message_of
from socratic_cli.transcript_files import TEXT_KEYS, Entry, entries, keys_named

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


def scored_lines(
    lines: Iterable[bytes], *, name: str, whole: bool, profile: str
) -> Iterator[ScoredLine]:
    """Score every response of a file, in order.

    Raises InvalidInput for an unreadable file.
    """
    for entry in entries(lines, name=name, whole=whole):
        if entry.problem is not None or entry.content is None:
            yield _failed(entry, "", profile, entry.problem or "cannot be read", entry.content)
        elif isinstance(entry.content, str):
            yield _scored_text(entry, entry.content, profile)
        else:
            yield _scored_record(entry, entry.content, profile)


def _scored_text(entry: Entry, text: str, profile: str) -> ScoredLine:
    try:
        return ScoredLine(entry.number, text, score_text(text, profile=profile).as_dict())
    except BrokenProfile as error:
        return _failed(entry, text, profile, str(error), None)


def _scored_record(entry: Entry, record: Mapping[str, Any], profile: str) -> ScoredLine:
    text = ""
    try:
        if "messages" in record and not any(isinstance(record.get(k), str) for k in TEXT_KEYS):
            record = {**record, **of_chat(record["messages"])}
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
        return found
    if wrong := next((key for key in TEXT_KEYS if key in record), None):
        raise TypeError(f"`{wrong}` must be a string, not {shown(record[wrong])}")
    raise TypeError(f"needs `text`, `response` or `output`, a string; {keys_named(record)}")


def _named(record: Mapping[str, Any], figures: dict[str, Any]) -> dict[str, Any]:
    """Return the figures, after the record's id if it has one that JSON can hold in a line."""
    found = record.get("id")
    return {"id": found, **figures} if isinstance(found, str | int) else figures


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
