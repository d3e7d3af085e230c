"""The errors that providers put into bodies and streams, in all their shapes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from socratic_runner.models.http.retry_after import delay


@dataclass(frozen=True, slots=True)
class Problem:
    """What a provider says went wrong."""

    message: str
    names: tuple[str, ...] = ()
    """What it calls the error, the most exact name first."""

    status: int | None = None
    """A number like an HTTP status that stands in the body."""

    retry_after: float | None = None
    """Seconds to wait, where the body says so."""


def read_problem(body: bytes) -> Problem:
    """What the body of an error says; where that is no JSON, all of it is the message."""
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        return Problem(body.decode(errors="replace"))
    return problem_in(parsed)


def problem_in(parsed: Any) -> Problem:
    """What parsed JSON says, such as `{"error": {"message": …, "type": …, "code": …}}`."""
    if isinstance(parsed, list) and parsed:
        parsed = parsed[0]  # so does Google
    if isinstance(parsed, dict) and parsed.get("error"):
        parsed = parsed["error"]
    if not isinstance(parsed, dict):
        return Problem(_text(parsed))
    details = parsed.get("details")
    names = (
        _member(details, "error_code"),
        parsed.get("code"),
        _member(parsed.get("innererror"), "code"),
        parsed.get("type"),
        parsed.get("status"),
    )
    code = parsed.get("code")
    return Problem(
        message=_message(parsed),
        names=tuple(name for name in names if isinstance(name, str)),
        status=code if type(code) is int and 400 <= code < 600 else None,
        retry_after=_retry_after(details),
    )


def _message(problem: dict[str, Any]) -> str:
    said = problem.get("message") or problem.get("detail") or problem
    behind = _member(problem.get("metadata"), "raw")  # what a router was told itself
    return f"{_text(said)}: {_text(behind)}" if behind else _text(said)


def _retry_after(details: Any) -> float | None:
    """Google's way of saying it: one of a list of details."""
    if isinstance(details, list):
        for detail in details:
            duration = _member(detail, "retryDelay")
            if isinstance(duration, str):
                return delay(duration)
    return None


def _member(parsed: Any, name: str) -> Any:
    return parsed.get(name) if isinstance(parsed, dict) else None


def _text(parsed: Any) -> str:
    return parsed if isinstance(parsed, str) else json.dumps(parsed, ensure_ascii=False)
