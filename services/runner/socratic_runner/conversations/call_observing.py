"""The port through which the runner reports model calls to metrics."""

from __future__ import annotations

from typing import Final, Protocol

from socratic_bench.domain.response import Usage


class CallObserver(Protocol):
    """Hears of every ended call and of failing models. Its methods must return at once."""

    def replied(
        self, model_id: str, seconds: float, usage: Usage, cost_nanodollars: int | None
    ) -> None:
        """Note a call that ended with a reply."""
        ...

    def failed(self, model_id: str, seconds: float, kind: str) -> None:
        """Note a call that ended without a reply; `kind` is the class of its failure."""
        ...

    def troubled(self, model_id: str, kind: str) -> None:
        """Note a failing model of an experiment; `kind` is the class of its latest failure."""
        ...

    def untroubled(self, model_id: str, kind: str) -> None:
        """Note that a model reported by `troubled` replies again, or is out of hand."""
        ...


class UnobservedCalls:
    """Counts nothing."""

    def replied(
        self, model_id: str, seconds: float, usage: Usage, cost_nanodollars: int | None
    ) -> None:
        """Do nothing."""

    def failed(self, model_id: str, seconds: float, kind: str) -> None:
        """Do nothing."""

    def troubled(self, model_id: str, kind: str) -> None:
        """Do nothing."""

    def untroubled(self, model_id: str, kind: str) -> None:
        """Do nothing."""


UNOBSERVED: Final = UnobservedCalls()
