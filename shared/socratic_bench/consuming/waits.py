"""What a worker waits for: a store or a broker that is unavailable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from logging import CRITICAL, DEBUG, WARNING
from typing import Final

from socratic_bench.errors import StoreNotWritable

WORK_WAITS: Final = "work waits"
STORE_IS_WAITED_FOR: Final = "the store is waited for"
"""What is logged where something waits; a command tells it otherwise."""


class Waits:
    """What the work of one worker waits for at the moment."""

    def __init__(self) -> None:
        self._errors: dict[object, Exception] = {}

    @property
    def error(self) -> Exception | None:
        """The gravest trouble for which something waits; None while nothing waits."""
        return gravest(self._errors.values())

    @contextmanager
    def waiting(self) -> Iterator[Callable[[Exception | None], None]]:
        """Yields what to call with each error for which something waits, and with None once it
        goes on; it does so at the latest when the context is closed.
        """
        key = object()

        def wait_for(error: Exception | None) -> None:
            self._errors.pop(key, None)
            if error is not None:
                self._errors[key] = error

        try:
            yield wait_for
        finally:
            wait_for(None)


def gravest(errors: Iterable[Exception]) -> Exception | None:
    """The first that somebody may have to act on, or else the first; None if there is none."""
    return min(errors, key=lambda error: not isinstance(error, StoreNotWritable), default=None)


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
