"""What a worker waits for: a store or a broker that is unavailable."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


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
