"""The waits of a worker: for an unavailable store or broker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from logging import CRITICAL, DEBUG, WARNING
from typing import Final

from socratic_bench.errors import StoreNotWritable

WORK_WAITS: Final = "work waits"
WAITING_FOR_STORE: Final = "waiting for the store"
"""The log events of a wait; a command shows waits in its own words."""


class Waits:
    """The errors that the work of one worker waits out at the moment."""

    def __init__(self) -> None:
        self._errors: dict[object, Exception] = {}

    @property
    def error(self) -> Exception | None:
        """The gravest error that some work waits out; None while no work waits."""
        return gravest(self._errors.values())

    @contextmanager
    def waiting(self) -> Iterator[Callable[[Exception | None], None]]:
        """Yield a function to call with each error that work waits out, and with None once the work
        continues; the end of the context calls it with None too.
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
    """The first error that may need an operator, or else the first; None without errors."""
    return min(errors, key=lambda error: not isinstance(error, StoreNotWritable), default=None)


class WaitNews:
    """Chooses the log level of each failed try during one wait.

    It logs the begin of the wait once, the need of an operator once, and all else at debug level.
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
