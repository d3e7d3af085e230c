"""A ceiling for the amount taken in a minute, which no 60 seconds exceed."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Final

MINUTE: Final = 60.0
BURST: Final = 1 / 20
"""The part of a minute's ceiling that the bucket holds: the amount of three seconds."""


@dataclass(slots=True, eq=False)
class Taken:
    """An amount that a call took, and the time."""

    at: float
    amount: int


class RateCeiling:
    """Lets amounts through so that the sum of no 60 seconds exceeds the ceiling.

    Two rules hold at once. A bucket spreads the amounts: it refills continuously and holds the
    amount of three seconds, and an overdrawn bucket recovers first. A bucket alone would let its
    content through besides the amount of a minute, and more after corrections. So a log adds up the
    amounts of the last minute, too. An amount above the ceiling passes when the bucket is full and
    the log is empty. (Partridge, "Gigabit Networking", 1994: leaky and token buckets.)

    Times are monotonic seconds; the caller passes the present time as `now`.
    """

    def __init__(self) -> None:
        self._per_minute: float | None = None
        self._level = math.inf
        self._refilled_at = 0.0
        self._log: deque[Taken] = deque()
        self._used = 0

    def set(self, per_minute: float | None, now: float) -> None:
        """Change the ceiling. None means no ceiling; 0 lets nothing through.

        A raised ceiling refills the bucket faster from now on, but adds nothing at once.
        """
        self._refill(now)
        self._per_minute = per_minute
        self._level = min(self._level, self._capacity)

    def ready_at(self, amount: int, now: float) -> float:
        """Return when a call may take `amount` if no other call does: `now`, later, or infinity."""
        if self._per_minute == 0:
            return math.inf
        if self._per_minute is None or amount == 0:
            return now
        self._refill(now)
        missing = min(amount, self._capacity) - self._level
        paced = now + max(0.0, missing) * MINUTE / self._per_minute
        return max(paced, self._fits_at(amount, self._per_minute, now))

    def is_overdrawn(self, now: float) -> bool:
        """Tell whether calls took more than the bucket held."""
        self._refill(now)
        return self._level < 0

    def take(self, amount: int, now: float) -> Taken:
        """Take `amount`, even before it is ready."""
        self._refill(now)
        self._forget(now)
        taken = Taken(now, amount)
        self._log.append(taken)
        self._used += amount
        self._level -= amount
        return taken

    def correct(self, taken: Taken, amount: int, now: float) -> None:
        """Replace the amount that a call took by its real `amount`."""
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
        """Return when the amounts in the log leave room for `amount`."""
        self._forget(now)
        used, at = self._used, now
        for taken in self._log:
            if used == 0 or used + amount <= per_minute:
                break
            used -= taken.amount
            at = taken.at + MINUTE
        return at
