"""Reads the errors in bodies and streams, in many providers' shapes, and the waits asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

LONGEST: Final = 3600.0
"""Seconds. A longer wait is cut to this."""

_DECIMAL: Final = re.compile(r"[0-9]{1,15}(\.[0-9]{0,15})?")
_PART: Final = r"[0-9]{1,9}(?:\.[0-9]{1,15})?"
_DURATION: Final = re.compile(rf"(?:({_PART})h)?(?:({_PART})m)?(?:({_PART})s)?(?:({_PART})ms)?")
_UNITS: Final = (3600.0, 60.0, 1.0, 0.001)
_RESET: Final = re.compile(r"(?:[a-z]+-)?ratelimit[a-z]*(?:-[a-z-]+)?-reset(?:-[a-z-]+)?")
"""The names of headers that tell when a limit is reset: they vary with provider and limit."""

_STANDARD: Final = re.compile(rf"\b(?:r|remaining)=0\b.*\b(?:t|reset)=({_PART})")
"""An exhausted limit in the header of a standard's drafts."""

_EPOCH: Final = 1e9
"""A larger number is a time in seconds since 1970, and no wait."""

_EPOCH_MILLISECONDS: Final = 1e11
"""A larger number is such a time in milliseconds."""

_IN_WORDS: Final = re.compile(
    rf"\b(?:(?:retry|try again) (?:after|in)|wait|retry-?after:?|retrydelay\W{{1,6}}) ?"
    rf"((?:{_PART}(?:h|ms?|s))+|{_PART} seconds?)\b"
)
"""`retryDelay` is Google's field, within the text of an error that a gateway passes on."""

_PASSED_ON: Final = "llm_provider-"
"""The beginning of names of headers that LiteLLM received from a provider and passes on."""


def _said(headers: Mapping[str, Any]) -> dict[str, str]:
    """Return headers by their names in lower case; a gateway's own come before passed-on ones."""
    told = {name.lower(): str(value) for name, value in headers.items()}
    passed_on = {
        name.removeprefix(_PASSED_ON): value
        for name, value in told.items()
        if name.startswith(_PASSED_ON)
    }
    return passed_on | told


def retry_after(headers: Mapping[str, Any], now: datetime) -> float | None:
    """Read the seconds to wait from `retry-after-ms` or `Retry-After`; returns None without them.

    A date is compared with the sender's clock if the headers tell it, else with `now`. The result
    is a number from 0 to LONGEST, whatever the headers hold.
    """
    said = _said(headers)
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):  # the second is Azure's
        milliseconds = _number(said.get(name, ""))
        if milliseconds is not None:
            return min(milliseconds / 1000, LONGEST)
    value = said.get("retry-after", "")
    seconds = delay(value)
    if seconds is None:
        seconds = _until(value, _date(said.get("date", "")) or now)
    return None if seconds is None else min(seconds, LONGEST)


def until_reset(headers: Mapping[str, Any], now: datetime) -> float | None:
    """Read the seconds until all exhausted limits are reset, from the headers that tell of limits;
    returns None without such a limit.
    """
    said = _said(headers)
    since = _date(said.get("date", "")) or now
    waits = [
        _until_time(said[name], since)
        for name in said
        if _RESET.fullmatch(name) and _is_exhausted(name, said)
    ]
    if standard := _STANDARD.search(said.get("ratelimit", "")):
        waits.append(delay(standard[1]))
    known = [wait for wait in waits if wait is not None]
    return min(max(known), LONGEST) if known else None


def _is_exhausted(reset: str, said: Mapping[str, str]) -> bool:
    """Whether nothing is left of the limit that a header's name tells the reset of.

    A header without a limit's name may come without the number of what is left.
    """
    left = said.get(reset.replace("reset", "remaining"))
    if left is None:
        return reset.endswith("ratelimit-reset")
    return _number(left) == 0


def _until_time(value: str, since: datetime) -> float | None:
    """Read seconds from a duration, or from a time in seconds, milliseconds or words."""
    number = _number(value)
    if number is not None and number > _EPOCH:
        until = number / 1000 if number > _EPOCH_MILLISECONDS else number
        return max(0.0, until - since.timestamp())
    seconds = delay(value)
    if seconds is not None:
        return seconds
    try:
        date = datetime.fromisoformat(value.strip())
    except ValueError:
        return _until(value, since)
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (date - since).total_seconds())


def delay(duration: Any) -> float | None:
    """Read seconds from a number, or from a duration such as `1m30.5s`; returns None otherwise."""
    text = "" if isinstance(duration, bool) else str(duration).strip()
    seconds = _number(text)
    found = _DURATION.fullmatch(text) if text and seconds is None else None
    if found is not None:
        seconds = sum(
            float(part) * unit for part, unit in zip(found.groups("0"), _UNITS, strict=True)
        )
    return None if seconds is None else min(seconds, LONGEST)


def in_words(message: str) -> float | None:
    """Read the seconds from a message such as `Please try again in 1.2s`."""
    found = _IN_WORDS.search(message.lower())
    return None if found is None else delay(found[1].partition(" second")[0])


def _number(value: str) -> float | None:
    return float(value) if _DECIMAL.fullmatch(value.strip()) else None


def _until(value: str, since: datetime) -> float | None:
    date = _date(value)
    return None if date is None else max(0.0, (date - since).total_seconds())


def _date(value: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(value)
        # Arithmetic with dates near the ends of the calendar would fail.
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError, IndexError, TypeError):
        return None


_WAITS: Final = ("retry_after", "retry_after_seconds")
_ABSENT: Final = frozenset({"none", "null"})


@dataclass(frozen=True, slots=True)
class ProviderProblem:
    """An error as a provider describes it."""

    message: str
    names: tuple[str, ...] = ()
    """The names of the error, the most exact one first."""

    status: int | None = None
    """A number like an HTTP status in the body."""

    parameter: str = ""
    """The field of the request that the provider does not accept, if the error names one."""

    is_told: bool = True
    """Whether the body is JSON; a proxy's page is not."""

    retry_after: float | None = None
    """Seconds to wait, if the body asks for a wait."""


def parse(body: bytes) -> Any:
    """Parse the JSON in a body; returns None for anything else."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def read_problem(body: bytes) -> ProviderProblem:
    """Read the body of an error; a body without JSON is the message."""
    parsed = parse(body)
    if parsed is None:
        return ProviderProblem(body.decode(errors="replace"), is_told=False)
    return problem_in(parsed)


def problem_in(parsed: Any) -> ProviderProblem:
    """Read an error from parsed JSON, such as `{"error": {"message": …, "type": …, "code": …}}`."""
    if isinstance(parsed, list) and parsed:
        parsed = parsed[0]  # so does Google
    if isinstance(parsed, dict) and (error := parsed.get("error")):
        # xAI and Text Generation Inference name the error beside its message.
        parsed = {**parsed, "message": error} if isinstance(error, str) else error
    if isinstance(parsed, list) and parsed:
        parsed = parsed[0]  # so does Cloudflare
    if not isinstance(parsed, dict):
        return ProviderProblem(_text(parsed))
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
    return ProviderProblem(
        message=message,
        names=tuple(name for name in names if isinstance(name, str) and _is_name(name)),
        status=_status(parsed.get("code")),
        parameter=str(parsed.get("param") or ""),
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
