"""The ceilings of an account for a model, and this process's share of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from socratic_runner.limits.rate_ceiling import RateCeiling, Taken


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
