"""Reading texts and transcripts line by line, and scoring them as they are read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from socratic_bench.scoring.legacy import is_legacy, on_unit_scale
from socratic_bench.scoring.score import Score
from socratic_bench.scoring.score import score as score_text

TEXT_KEYS = ("text", "response", "output")
"""Where a transcript's line may keep the tutor's response, in the order of preference."""

CONVERTED = "converted"
"""The status of a line that held the predecessor's scores, now on the scale 0 to 1."""


@dataclass(frozen=True, slots=True)
class ScoredLine:
    """One input line with what came of it."""

    number: int
    text: str
    figures: dict[str, Any]
    """Ready for JSON; the shape of a score, or with `error` in place of figures."""

    problem: str | None = None

    @property
    def scored(self) -> bool:
        """Whether this line was scored here, and not converted from an older score."""
        return self.problem is None and self.figures["status"] != CONVERTED


def scored_lines(
    lines: Iterable[bytes], *, name: str, whole: bool, profile: str
) -> Iterator[ScoredLine]:
    """Every line scored, as it is read: memory does not grow with the file."""
    reads_json: bool | None = None
    if whole:
        lines = [b"".join(lines)]
    for number, raw in enumerate(lines, start=1):
        place = f"{name} line {number}"
        if number == 1:
            raw = raw.removeprefix(b"\xef\xbb\xbf")  # noqa: PLW2901 - a byte-order mark is no text
        try:
            line = raw.decode().rstrip("\r\n")
        except UnicodeDecodeError as error:
            yield _failed(number, "", profile, f"{place}: not UTF-8 text: {error.reason}")
            continue
        if reads_json is None and line.strip():
            reads_json = line.lstrip().startswith("{")
        if not reads_json:
            yield ScoredLine(number, line, score_text(line, profile=profile).as_dict())
        elif line.strip():
            yield _scored_record(number, line, place, profile)


def _scored_record(number: int, line: str, place: str, profile: str) -> ScoredLine:
    text = ""
    try:
        record = _record(line)
        found = next((record[key] for key in TEXT_KEYS if key in record), None)
        if found is None and is_legacy(record):
            return ScoredLine(number, "", _converted(record))
        text = _text(found)
        return ScoredLine(number, text, _score_of(record, text, profile).as_dict())
    except (TypeError, ValueError) as error:
        return _failed(number, text, profile, f"{place}: {error}")


def _text(found: object) -> str:
    if not isinstance(found, str):
        raise TypeError("needs `text`, a string")
    return found


def _record(line: str) -> dict[str, Any]:
    """The object in a line. Raises ValueError or TypeError, saying what is wrong with it."""
    try:
        record = json.loads(line, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise ValueError(f"not valid JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise ValueError("not valid JSON: nested too deeply") from None
    if not isinstance(record, dict):
        raise TypeError("must be a JSON object with `text`")
    return record


def _converted(record: dict[str, Any]) -> dict[str, Any]:
    """The predecessor's scores on the scale of today. Raises ValueError for those that are none."""
    try:
        converted = {**on_unit_scale(record), "status": CONVERTED}
        json.dumps(converted, allow_nan=False)
    except OverflowError:
        raise ValueError("a score is far above 100") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return converted


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number in JSON")


def _score_of(record: dict[str, Any], text: str, profile: str) -> Score:
    tokens = record.get("output_tokens")
    if tokens is not None and (isinstance(tokens, bool) or not isinstance(tokens, int | float)):
        raise ValueError(f"`output_tokens` must be a number, not {tokens!r}")
    dimension = record.get("dimension")
    return score_text(
        text,
        output_tokens=tokens,
        status=record.get("status", "ok"),
        dimension=dimension if isinstance(dimension, str) else None,
        profile=profile,
    )


def _failed(number: int, text: str, profile: str, problem: str) -> ScoredLine:
    unscored = dict(score_text(text, status="error", profile=profile))
    figures = {**unscored, "status": "error", "error": problem, "evidence": None}
    return ScoredLine(number, text, figures, problem)
