"""The time in which a runner may have calls in flight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Final

from socratic_bench.errors import FailureKind, ModelCallFailed
from socratic_runner.conversations.conversation import TurnPutOff
from socratic_runner.model_pool import CalledModel

STORING_SECONDS: Final = 10.0
"""Seconds after a call in which its reply is stored and published."""


@dataclass(frozen=True, slots=True)
class CallWindow:
    """Whether a call can end while the runner is there to store its reply.

    A process has all the time it wants. A function ends after some minutes, whatever it has in
    hand: a call that was paid for would be lost.
    """

    left: Callable[[], float] = lambda: inf
    """Seconds until the runner ends."""

    whole: float = inf
    """The most seconds that there ever are."""

    longest_pause: float = inf
    """Seconds for which a run may wait in hand while its model is paused: a function is paid for
    its waiting."""

    def refusal(self, model: CalledModel) -> TurnPutOff | ModelCallFailed | None:
        """Return why a call to this model may not begin now; None if it may."""
        if self is ALL_TIME:
            return None
        needed = model.deadline + STORING_SECONDS
        if needed > self.whole:
            return ModelCallFailed(
                FailureKind.TIMEOUT,
                f"a call may take {model.deadline:g} s, and this runner ends after "
                f"{self.whole:g} s: lower the model's limits.timeout_seconds to "
                f"{self.whole - STORING_SECONDS:g}, or run the runner in a container",
                retryable=False,
            )
        if needed > self.left():
            return TurnPutOff("a call might not end in the time that is left")
        paused = model.limiter.paused_for
        if paused > self.longest_pause:
            return TurnPutOff("the model is paused", paused)
        return None


ALL_TIME: Final = CallWindow()
"""The window of a process."""
