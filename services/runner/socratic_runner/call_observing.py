"""What the runner says about calls to models to whoever counts them."""

from __future__ import annotations

from typing import Protocol

from socratic_bench.domain.response import Usage


class CallObserver(Protocol):
    """Told of every call that ended, and of models that fail. Must return at once."""

    def replied(
        self, model_id: str, seconds: float, usage: Usage, cost_nanodollars: int | None
    ) -> None:
        """A call ended with a reply."""
        ...

    def failed(self, model_id: str, seconds: float, kind: str) -> None:
        """A call ended without a reply; `kind` is the class of its failure."""
        ...

    def troubled(self, model_id: str, kind: str) -> None:
        """A model of an experiment fails, with `kind` the class of its latest failure."""
        ...

    def untroubled(self, model_id: str, kind: str) -> None:
        """What was said by `troubled` holds no longer."""
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
