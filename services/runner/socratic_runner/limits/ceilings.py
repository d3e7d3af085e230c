"""The ceilings of an account for a model, and this process's share of them."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Final, NamedTuple

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


@dataclass(frozen=True, slots=True)
class Ceilings:
    """The limits of an account for a model; None means that no limit is known."""

    concurrency: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None

    @property
    def exist(self) -> bool:
        """Whether any limit is known."""
        return self != Ceilings()


class Charge(NamedTuple):
    """The amounts that one call took from the rates."""

    request: Taken
    tokens: Taken


class SharedCeilings:
    """The share of an account's ceilings that this process may use; without `set_share`, all of
    them.

    Times are monotonic seconds; the caller passes the present time as `now`.
    """

    def __init__(self) -> None:
        self._whole = Ceilings()
        self._parts, self._total = 1, 1
        self._requests = RateCeiling()
        self._tokens = RateCeiling()

    @property
    def whole(self) -> Ceilings:
        """The ceilings of the whole account."""
        return self._whole

    @property
    def concurrency(self) -> int | None:
        """Calls that this process may have in flight; None means that no limit is known."""
        concurrency = self._whole.concurrency
        return None if concurrency is None else concurrency * self._parts // self._total

    def set_whole(self, ceilings: Ceilings, now: float) -> None:
        """Change the ceilings of the whole account."""
        self._whole = ceilings
        self._set_rates(now)

    def set_share(self, parts: int, total: int, now: float) -> None:
        """Use `parts` of `total` of every ceiling."""
        self._parts, self._total = parts, total
        self._set_rates(now)

    def ready_at(self, tokens: int, now: float) -> float:
        """Return when the rates admit a call of at most `tokens`, if no other call comes first."""
        return max(self._requests.ready_at(1, now), self._tokens.ready_at(tokens, now))

    def is_overdrawn(self, now: float) -> bool:
        """Tell whether calls took more from a rate than its bucket held."""
        return self._requests.is_overdrawn(now) or self._tokens.is_overdrawn(now)

    def take(self, tokens: int, now: float) -> Charge:
        """Charge the rates for a call that begins now."""
        return Charge(self._requests.take(1, now), self._tokens.take(tokens, now))

    def correct(self, charge: Charge, tokens: int, now: float) -> None:
        """Replace the tokens of a charge by the `tokens` that the call took."""
        self._tokens.correct(charge.tokens, tokens, now)

    def give_back(self, charge: Charge, now: float) -> None:
        """Refund the charge of a call that was not made."""
        self._requests.correct(charge.request, 0, now)
        self._tokens.correct(charge.tokens, 0, now)

    def _set_rates(self, now: float) -> None:
        for rate, per_minute in (
            (self._requests, self._whole.requests_per_minute),
            (self._tokens, self._whole.tokens_per_minute),
        ):
            share = None if per_minute is None else per_minute * self._parts / self._total
            rate.set(share, now)
