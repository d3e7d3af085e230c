"""Keeping this process's part of the limits that it shares with other runners."""

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
"""Seconds that a share is this runner's after it was claimed."""

MARGIN: Final = 3.0
"""Seconds by which it stops using its share earlier: the claim took a while."""

MIN_INTERVAL: Final = 0.25
"""Seconds between two claims at least, however many come to wait."""

RATE_PARTS: Final = 1000
"""Into how many parts ceilings are divided where only rates have one."""


class AccountShares(StoreRounds):
    """Shares the ceilings of accounts with other runners, while its context is open.

    It claims again and again what the limiters can use, and tells each its share. A limiter admits
    no call without a share that is certainly its own: a new limiter, and every limiter while the
    store is unavailable for longer than a share is valid. The first call that waits at a limiter
    does not wait for the next beat.
    """

    def __init__(self, shared: SharedLimits, owner: str, limiters: ConcurrencyLimiters) -> None:
        """`owner` is the name of this runner; no other may have it at the same time."""
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
        """What the store grants; None if it does not answer."""
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
        """Give up every share: who may be using it now is not known."""
        self._stop_lapse()
        # D-070: without the store, ceilings stop the calls rather than being exceeded.
        for _, limiter in self._limiters:
            limiter.set_share(0, 1)

    def _stop_lapse(self) -> None:
        if self._lapse is not None:
            self._lapse.cancel()
            self._lapse = None


def _parts(limiter: ConcurrencyLimiter) -> int:
    return limiter.ceilings.concurrency or RATE_PARTS


def _wants(limiter: ConcurrencyLimiter) -> int:
    """How many parts a limiter has a use for.

    Where only rates are limited, a part is no number of calls: whoever has calls to make could use
    all that there is.
    """
    calls = limiter.in_flight + limiter.waiting
    if limiter.ceilings.concurrency is None:
        return RATE_PARTS if calls else 0
    return min(calls, limiter.ceilings.concurrency)
