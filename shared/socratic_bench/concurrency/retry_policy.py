"""When to try again: exponential back-off with full jitter, under a ceiling in count and time.

Full jitter (Brooker 2015, "Exponential Backoff and Jitter"): a delay drawn evenly from 0 to the
exponential bound spreads retries best. A provider's own delay is never undercut.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final


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


SHORTEST: Final = 0.005
"""Seconds of pause for work that costs next to nothing."""

REST: Final = 3.0
"""Seconds of pause for each second of processor time of a process that is not busy."""

BUSY: Final = 1 / 3
"""The share of a core from which a process is busy, and takes the longest pause. Batches that cost
much use a quarter of a core, with the pauses between them."""


class AdaptivePause:
    """Chooses the pause after each batch: short for an idle process, the longest for a busy one.

    A batch costs about the same for any size. So an idle process takes small batches at once, and
    a busy one lets messages gather. The last batch's duration counts too: on a machine that others
    keep busy, a process gets little processor time and takes long.
    """

    def __init__(
        self,
        longest: float,
        *,
        busy: float = BUSY,
        processor_time: Callable[[], float] = time.process_time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """No pause is longer than `longest` seconds; 0 means none.

        A process is busy that uses `busy` or more of a core.
        `processor_time` gives the seconds that the process has used, `clock` those that passed.
        """
        self._longest = longest
        self._busy = busy
        self._processor_time = processor_time
        self._clock = clock
        self._used_before = processor_time()
        self._before = clock()

    def next(self, lasted: float) -> float:
        """Return the seconds of the pause, by the processor time since the last call.

        The last batch took `lasted` seconds.
        """
        used, now = self._processor_time(), self._clock()
        elapsed = max(now - self._before, 1e-9)
        busy = (used - self._used_before) / elapsed
        self._used_before, self._before = used, now
        if busy >= self._busy:
            return self._longest
        # What a process does in an hour without messages says little about the next batch.
        lately = busy * min(elapsed, self._longest)
        return min(self._longest, max(SHORTEST, REST * lately, lasted))
