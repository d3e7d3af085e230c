"""Reads how long a provider asks callers to wait."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

LONGEST: Final = 3600.0
"""Seconds. A longer wait is cut to this."""

_DECIMAL: Final = re.compile(r"[0-9]{1,15}(\.[0-9]{0,15})?")
_PART: Final = r"[0-9]{1,9}(?:\.[0-9]{1,15})?"
_DURATION: Final = re.compile(rf"(?:({_PART})h)?(?:({_PART})m)?(?:({_PART})s)?(?:({_PART})ms)?")
_UNITS: Final = (3600.0, 60.0, 1.0, 0.001)
_IN_WORDS: Final = re.compile(
    rf"\b(?:retry|try again) (?:after|in) ((?:{_PART}(?:h|ms?|s))+|{_PART} seconds?)\b"
)


def retry_after(headers: Mapping[str, Any], now: datetime) -> float | None:
    """Read the seconds to wait from `retry-after-ms` or `Retry-After`; returns None without them.

    A date is compared with the sender's clock if the headers tell it, else with `now`. The result
    is a number from 0 to LONGEST, whatever the headers hold.
    """
    said = {name.lower(): str(value) for name, value in headers.items()}
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):  # the second is Azure's
        milliseconds = _number(said.get(name, ""))
        if milliseconds is not None:
            return min(milliseconds / 1000, LONGEST)
    value = said.get("retry-after", "")
    seconds = _number(value)
    if seconds is None:
        seconds = _until(value, _date(said.get("date", "")) or now)
    return None if seconds is None else min(seconds, LONGEST)


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
