"""What a worker waits for: a store or a broker that is unavailable."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from logging import CRITICAL, DEBUG, WARNING

from socratic_bench.errors import StoreNotWritable


class Waits:
    """The reasons for which work of one worker waits at the moment."""

    def __init__(self) -> None:
        self._reasons: dict[object, str] = {}

    @property
    def reason(self) -> str | None:
        """One of the reasons; None while nothing waits."""
        return next(iter(self._reasons.values()), None)

    @contextmanager
    def waiting(self, reason: str) -> Iterator[None]:
        """Say that some work waits while the context is open."""
        key = object()
        self._reasons[key] = reason
        try:
            yield
        finally:
            del self._reasons[key]


class WaitNews:
    """How loudly each failed try is told while one thing is waited for.

    Once that it is waited for, once that somebody may have to act, and else in a whisper.
    """

    def __init__(self) -> None:
        self._told: set[int] = set()

    def level(self, error: Exception) -> int:
        """The level at which to log this error."""
        level = CRITICAL if isinstance(error, StoreNotWritable) else WARNING
        if level in self._told:
            return DEBUG
        self._told.add(level)
        return level
