"""The port through which a worker reports its work to metrics."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Literal, Protocol

SettledAs = Literal["handled", "retried", "rejected", "returned"]
"""How messages left a worker. Returned messages were left unsettled or lost: the broker delivers
them again, to this worker or another."""


class Observer(Protocol):
    """Hears of every message that a worker takes and settles. Its methods must return at once."""

    def holding(self, queue: str, times: Iterable[datetime]) -> AbstractContextManager[None]:
        """Hold a batch whose events happened at these times while the context is open."""
        ...

    def taken(self, queue: str, messages: int) -> None:
        """Note messages of a queue that the worker took in hand."""
        ...

    def settled(self, queue: str, outcome: SettledAs, messages: int, seconds: float) -> None:
        """Note messages that left the worker `seconds` after it took them."""
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
