"""When to try again: exponential back-off with full jitter, under a ceiling in count and time.

Full jitter (Brooker 2015, "Exponential Backoff and Jitter"): a delay drawn evenly from 0 to the
exponential bound spreads retries best. A provider's own delay is never undercut.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often to try, and how long to wait between tries."""

    attempts: int = 5
    """Tries in all, the first included."""

    first_delay: float = 0.5
    """Seconds: the bound of the first delay, doubled with every further one."""

    longest_delay: float = 30.0
    """Seconds: no drawn delay is longer."""

    draw: Callable[[], float] = random.random
    """Returns a random number, evenly from 0 to 1."""

    def exhausted(self, attempt: int) -> bool:
        """Tell whether the `attempt`-th try (from 1) was the last."""
        return attempt >= self.attempts

    def delay(self, attempt: int, at_least: float | None = None) -> float:
        """Return the seconds to wait after the `attempt`-th try (from 1) failed.

        The delay is never shorter than `at_least`, the wait that the other side asked for.
        """
        bound = min(self.longest_delay, self.first_delay * 2.0 ** min(attempt - 1, 30))
        drawn = bound * self.draw()
        return drawn if at_least is None else max(drawn, at_least)
