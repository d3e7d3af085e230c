"""A ceiling on what is taken in a minute: evenly spread, and never exceeded in any minute."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Final

MINUTE: Final = 60.0
BURST: Final = 1 / 20
"""The part of a minute's ceiling that may be taken at once: what three seconds bring in."""


@dataclass(slots=True, eq=False)
class Taken:
    """An amount that was taken, and when."""

    at: float
    amount: int


class RateCeiling:
    """At most so much in every minute that one may pick, the amounts counted when they are taken.

    Two rules hold at once. A bucket that is refilled continuously spreads what is taken: it holds
    what three seconds bring in, and one that was overdrawn by a large amount has to recover first.
    A bucket alone would let through its content besides what a minute brings in, and more where
    amounts are corrected afterwards; so what was taken in the last minute is added up too. An
    amount larger than the ceiling itself is let through when the bucket is full and nothing was
    taken for a minute. (Partridge, "Gigabit Networking", 1994: leaky and token buckets.)

    Times are seconds that never go back; the caller passes the present one.
    """

    def __init__(self) -> None:
        self._per_minute: float | None = None
        self._level = math.inf
        self._refilled_at = 0.0
        self._log: deque[Taken] = deque()
        self._used = 0

    def set(self, per_minute: float | None, now: float) -> None:
        """Change the ceiling; None: there is none, and 0: nothing more is let through.

        A raised ceiling brings in more from now on, but nothing at once.
        """
        self._refill(now)
        self._per_minute = per_minute
        self._level = min(self._level, self._capacity)

    def ready_at(self, amount: int, now: float) -> float:
        """When `amount` can be taken if nothing else is: `now`, later, or infinity."""
        if self._per_minute == 0:
            return math.inf
        if self._per_minute is None or amount == 0:
            return now
        self._refill(now)
        missing = min(amount, self._capacity) - self._level
        paced = now + max(0.0, missing) * MINUTE / self._per_minute
        return max(paced, self._fits_at(amount, self._per_minute, now))

    def take(self, amount: int, now: float) -> Taken:
        """Take `amount`, whether it is ready or not."""
        self._refill(now)
        self._forget(now)
        taken = Taken(now, amount)
        self._log.append(taken)
        self._used += amount
        self._level -= amount
        return taken

    def correct(self, taken: Taken, amount: int, now: float) -> None:
        """What was taken turned out to be `amount`."""
        self._refill(now)
        self._forget(now)
        more = amount - taken.amount
        if taken.at + MINUTE > now:
            self._used += more
        self._level = min(self._level - more, self._capacity)
        taken.amount = amount

    @property
    def _capacity(self) -> float:
        return math.inf if self._per_minute is None else self._per_minute * BURST

    def _refill(self, now: float) -> None:
        if self._per_minute is None:
            self._level = math.inf
        else:
            brought = (now - self._refilled_at) * self._per_minute / MINUTE
            self._level = min(self._level + brought, self._capacity)
        self._refilled_at = now

    def _forget(self, now: float) -> None:
        while self._log and self._log[0].at + MINUTE <= now:
            self._used -= self._log.popleft().amount

    def _fits_at(self, amount: int, per_minute: float, now: float) -> float:
        """When so much of the last minute's takings is over that `amount` fits besides the rest."""
        self._forget(now)
        used, at = self._used, now
        for taken in self._log:
            if used == 0 or used + amount <= per_minute:
                break
            used -= taken.amount
            at = taken.at + MINUTE
        return at
