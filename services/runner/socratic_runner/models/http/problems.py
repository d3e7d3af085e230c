"""Reads the errors in bodies and streams, in the shapes of many providers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from socratic_runner.models.http.retry_after import delay, in_words, retry_after, until_reset

_WAITS: Final = ("retry_after", "retry_after_seconds")
_ABSENT: Final = frozenset({"none", "null"})


@dataclass(frozen=True, slots=True)
class Problem:
    """An error as a provider describes it."""

    message: str
    names: tuple[str, ...] = ()
    """The names of the error, the most exact one first."""

    status: int | None = None
    """A number like an HTTP status in the body."""

    retry_after: float | None = None
    """Seconds to wait, if the body asks for a wait."""


def parse(body: bytes) -> Any:
    """Parse the JSON in a body; returns None for anything else."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def read_problem(body: bytes) -> Problem:
    """Read the body of an error; a body without JSON is the message."""
    parsed = parse(body)
    return Problem(body.decode(errors="replace")) if parsed is None else problem_in(parsed)


def problem_in(parsed: Any) -> Problem:
    """Read an error from parsed JSON, such as `{"error": {"message": …, "type": …, "code": …}}`."""
    if isinstance(parsed, list) and parsed:
        parsed = parsed[0]  # so does Google
    if isinstance(parsed, dict) and (error := parsed.get("error")):
        # xAI and Text Generation Inference name the error beside its message.
        parsed = {**parsed, "message": error} if isinstance(error, str) else error
    if not isinstance(parsed, dict):
        return Problem(_text(parsed))
    details, metadata = parsed.get("details"), parsed.get("metadata")
    names = (
        _member(details, "error_code"),
        parsed.get("code"),
        _member(parsed.get("innererror"), "code"),
        _member(metadata, "error_type"),  # OpenRouter
        parsed.get("type"),
        parsed.get("status"),
        parsed.get("error_type"),  # Text Generation Inference
        "flagged_input" if _member(metadata, "flagged_input") else None,  # OpenRouter's moderation
    )
    message = _message(parsed)
    return Problem(
        message=message,
        names=tuple(name for name in names if isinstance(name, str) and _is_name(name)),
        status=_status(parsed.get("code")),
        retry_after=next(_waits(parsed, message), None),
    )


def _is_name(text: str) -> bool:
    """Return whether a text names an error; LiteLLM sends numbers and an absent type as text."""
    return not text.isdigit() and text.lower() not in _ABSENT


def _status(code: Any) -> int | None:
    """Read a number like an HTTP status; LiteLLM and Azure send it as text."""
    number = int(code) if isinstance(code, str) and code.isascii() and code.isdigit() else code
    return number if type(number) is int and 400 <= number < 600 else None


def _message(problem: dict[str, Any]) -> str:
    said = problem.get("message") or problem.get("detail") or problem
    behind = _member(problem.get("metadata"), "raw")  # the error that a router received
    return f"{_text(said)}: {_text(behind)}" if behind else _text(said)


def _waits(problem: dict[str, Any], message: str) -> Iterator[float]:
    """Yield the waits that a body asks for, the most exact one first."""
    details, metadata = problem.get("details"), problem.get("metadata")
    for detail in details if isinstance(details, list) else ():
        yield from _given(delay(_member(detail, "retryDelay")))  # Google
    for place in (problem, metadata):
        for name in _WAITS:
            yield from _given(delay(_member(place, name)))
    headers = _member(metadata, "headers")
    if isinstance(headers, Mapping):  # the headers that a router received
        now = datetime.now(UTC)
        yield from _given(retry_after(headers, now))
        yield from _given(until_reset(headers, now))
    yield from _given(in_words(message))


def _given(seconds: float | None) -> Iterator[float]:
    if seconds is not None:
        yield seconds


def _member(parsed: Any, name: str) -> Any:
    return parsed.get(name) if isinstance(parsed, dict) else None


def _text(parsed: Any) -> str:
    return parsed if isinstance(parsed, str) else json.dumps(parsed, ensure_ascii=False)
