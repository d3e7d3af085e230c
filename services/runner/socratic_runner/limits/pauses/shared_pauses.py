"""Shares the pauses of models with other runners through the store."""

from __future__ import annotations

import asyncio
from typing import Final

from socratic_bench.ports.stores.limits import SharedLimits
from socratic_runner.limits.concurrency_limiter import ConcurrencyLimiter
from socratic_runner.limits.limiters import ConcurrencyLimiters
from socratic_runner.limits.store_rounds import StoreRounds

BEAT: Final = 2.0
"""Seconds between two questions about models with calls."""

QUICK_BEAT: Final = 0.5
"""The same for a model whose calls wait for the outcome of another runner's call."""

MIN_INTERVAL: Final = 0.05
"""Seconds between two questions at least."""


class SharedPauses(StoreRounds):
    """Makes the pauses of models hold for all runners, while the context is open.

    It tells the store at once of a push-back and of the first reply after one. Other runners learn
    of them with their next question. While the store does not answer, each runner keeps its own
    pauses.
    """

    def __init__(self, shared: SharedLimits, limiters: ConcurrencyLimiters) -> None:
        super().__init__(
            "shared pauses",
            min_interval=MIN_INTERVAL,
            away="pauses of models cannot be shared; this runner goes by what it is told itself",
            back="pauses of models are shared again",
        )
        self._shared = shared
        self._limiters = limiters
        limiters.share_pauses(self.wake)

    async def _ask(self, begun: float) -> bool:
        in_use = self._in_use()
        if not in_use:
            return False
        news = [limiter.pause_news(at) for at, limiter in in_use]
        answers = await self._answer(self._shared.pauses(news))
        for scope, limiter in in_use:
            limiter.take_pause(None if answers is None else answers.get(scope))
        return True

    def _next_at(self, begun: float) -> float:
        # A limiter wakes this object only if its last answer lapsed before a call began to wait.
        now = asyncio.get_running_loop().time()
        return min((_next_look(limiter, now) for _, limiter in self._in_use()), default=now + BEAT)

    def _in_use(self) -> list[tuple[str, ConcurrencyLimiter]]:
        return [(scope, limiter) for scope, limiter in self._limiters if _is_in_use(limiter)]


def _is_in_use(limiter: ConcurrencyLimiter) -> bool:
    return limiter.pausing.has_news or bool(limiter.in_flight or limiter.waiting)


def _next_look(limiter: ConcurrencyLimiter, now: float) -> float:
    if limiter.pausing.is_open(now) or not limiter.waiting:
        return now + BEAT
    asks_at = limiter.pausing.asks_at()
    return min(asks_at if asks_at > now else now + QUICK_BEAT, now + QUICK_BEAT)
