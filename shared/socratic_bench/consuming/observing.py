"""What a worker says about its work to whoever counts it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Literal, Protocol

SettledAs = Literal["handled", "retried", "rejected", "returned"]
"""What became of messages. Returned ones were left unsettled, or were not in hand any more: they
are delivered again, to this worker or another."""


class Observer(Protocol):
    """Told of every message a worker takes, and of what became of it. Must return at once."""

    def holding(self, queue: str, times: Iterable[datetime]) -> AbstractContextManager[None]:
        """While the context is open a batch is in hand whose events happened at these times."""
        ...

    def taken(self, queue: str, messages: int) -> None:
        """Messages of a queue are in hand now."""
        ...

    def settled(self, queue: str, outcome: SettledAs, messages: int, seconds: float) -> None:
        """Messages of a queue are not in hand any more, `seconds` after they were taken."""
        ...


class Unobserved:
    """Counts nothing."""

    def holding(self, queue: str, times: Iterable[datetime]) -> AbstractContextManager[None]:
        """Do nothing."""
        return nullcontext()

    def taken(self, queue: str, messages: int) -> None:
        """Do nothing."""

    def settled(self, queue: str, outcome: SettledAs, messages: int, seconds: float) -> None:
        """Do nothing."""
