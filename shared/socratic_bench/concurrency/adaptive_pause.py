"""A pause between batches of work that grows with the processor time that the work takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

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
