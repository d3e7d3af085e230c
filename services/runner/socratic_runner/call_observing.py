"""What the runner says about calls to models to whoever counts them."""

from __future__ import annotations

from typing import Protocol

from socratic_bench.domain.response import Usage


class CallObserver(Protocol):
    """Told of every call that ended. Must return at once."""

    def replied(
        self, model_id: str, seconds: float, usage: Usage, cost_nanodollars: int | None
    ) -> None:
        """A call ended with a reply."""
        ...

    def failed(self, model_id: str, seconds: float, kind: str) -> None:
        """A call ended without a reply; `kind` is the class of its failure."""
        ...


class UnobservedCalls:
    """Counts nothing."""

    def replied(
        self, model_id: str, seconds: float, usage: Usage, cost_nanodollars: int | None
    ) -> None:
        """Do nothing."""

    def failed(self, model_id: str, seconds: float, kind: str) -> None:
        """Do nothing."""
