"""How long a provider asks to wait before another try."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_DECIMAL = re.compile(r"[0-9]{1,15}(\.[0-9]{0,15})?")


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds to wait, from `retry-after-ms` or `Retry-After`; None where neither says so.

    Never negative, infinite, or not a number, whatever the headers hold.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("Retry-After", "")
    seconds = _number(value)
    return seconds if seconds is not None else _until(value, now)


def delay(duration: str) -> float | None:
    """Seconds in a duration such as `34.5s`; None where it is none."""
    return _number(duration.removesuffix("s")) if duration.endswith("s") else None


def _number(value: str) -> float | None:
    return float(value) if _DECIMAL.fullmatch(value.strip()) else None


def _until(value: str, now: datetime) -> float | None:
    try:
        date = parsedate_to_datetime(value)
        seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)) - now
    except (ValueError, OverflowError, IndexError, TypeError):
        return None
    return max(0.0, seconds.total_seconds())
