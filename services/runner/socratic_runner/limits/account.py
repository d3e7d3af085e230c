"""Claims this process's shares of the ceilings that several runners use."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Final

from socratic_bench.ports.stores.limits import ShareClaim, SharedLimits
from socratic_runner.limits.concurrency_limiter import ConcurrencyLimiter
from socratic_runner.limits.limiters import ConcurrencyLimiters
from socratic_runner.limits.store_rounds import StoreRounds

BEAT: Final = 2.0
"""Seconds between two claims."""

VALID: Final = 10.0
"""Seconds after a claim during which the share belongs to this runner."""

MARGIN: Final = 3.0
"""Seconds before the end of a share at which the runner stops using it: the claim took a while."""

MIN_INTERVAL: Final = 0.25
"""Seconds between two claims at least, however many calls begin to wait."""

RATE_PARTS: Final = 1000
"""The parts that ceilings have where only rates have a ceiling."""


class AccountShares(StoreRounds):
    """Shares the ceilings of accounts with other runners, while the context is open.

    At every beat it claims the parts that the limiters can use, and gives each limiter its share. A
    limiter admits no call without a share that is certainly its own. That holds for a new limiter,
    and for every limiter while the store is unavailable for longer than a share is valid. The first
    call that waits at a limiter starts a claim at once.
    """

    def __init__(self, shared: SharedLimits, owner: str, limiters: ConcurrencyLimiters) -> None:
        """`owner` names this runner; no other runner has the same name at the same time."""
        super().__init__(
            "account shares",
            min_interval=MIN_INTERVAL,
            away="shares of limits cannot be claimed; calls to models with limits will wait",
            back="shares of limits are claimed again",
        )
        self._shared = shared
        self._owner = owner
        self._limiters = limiters
        self._lapse: asyncio.TimerHandle | None = None
        limiters.share_out(self.wake)

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await super().__aexit__(error_type, error, traceback)
        self._forgo()
        if claims := [claim._replace(wants=0) for claim in self._claims()]:
            await self._claim(claims)

    async def _ask(self, begun: float) -> bool:
        claims = self._claims()
        if not claims:
            return False
        shares = await self._claim(claims)
        if shares is not None:
            self._lapse_at(begun + VALID - MARGIN)
            self._apply(claims, shares)
        return True

    def _next_at(self, begun: float) -> float:
        return begun + BEAT

    def _claims(self) -> list[ShareClaim]:
        return [
            ShareClaim(scope, _parts(limiter), _wants(limiter))
            for scope, limiter in self._limiters
            if limiter.ceilings.exist
        ]

    async def _claim(self, claims: Sequence[ShareClaim]) -> Mapping[str, int] | None:
        """Return the shares that the store grants; None if the store does not answer."""
        return await self._answer(self._shared.share(claims, self._owner, VALID))

    def _apply(self, claims: Sequence[ShareClaim], shares: Mapping[str, int]) -> None:
        totals = {claim.scope: claim.total for claim in claims}
        for scope, limiter in self._limiters:
            if scope in totals:
                limiter.set_share(shares.get(scope, 0), totals[scope])

    def _lapse_at(self, time: float) -> None:
        self._stop_lapse()
        self._lapse = asyncio.get_running_loop().call_at(time, self._forgo)

    def _forgo(self) -> None:
        """Give up every share, which another runner may use now."""
        self._stop_lapse()
        # Without the store, ceilings stop the calls rather than being exceeded.
        for _, limiter in self._limiters:
            limiter.set_share(0, 1)

    def _stop_lapse(self) -> None:
        if self._lapse is not None:
            self._lapse.cancel()
            self._lapse = None


def _parts(limiter: ConcurrencyLimiter) -> int:
    return limiter.ceilings.concurrency or RATE_PARTS


def _wants(limiter: ConcurrencyLimiter) -> int:
    """Return the number of parts that a limiter can use.

    Where only rates have ceilings, a part is not a number of calls: a limiter with calls could use
    all parts.
    """
    calls = limiter.in_flight + limiter.waiting
    if limiter.ceilings.concurrency is None:
        return RATE_PARTS if calls else 0
    return min(calls, limiter.ceilings.concurrency)
