"""Shares ceilings and pauses of models with other runners through the store."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping, Sequence
from typing import Final, Self, TypeVar

import structlog

from socratic_bench.concurrency.deadlines import wait_at_most, within
from socratic_bench.ports.stores.limits import ShareClaim, SharedLimits
from socratic_runner.limits.concurrency_limiter import ConcurrencyLimiter
from socratic_runner.limits.limiters import ConcurrencyLimiters

log = structlog.get_logger(__name__)

PATIENCE: Final = 3.0
"""Seconds that the store may take for an answer."""

Answer = TypeVar("Answer")


class StoreRounds(ABC):
    """Asks the store in rounds while the context is open; faults of the store do not end them."""

    def __init__(self, name: str, *, min_interval: float, away: str, back: str) -> None:
        """`min_interval` is the shortest time between two questions, in seconds. The log says
        `away` once when the store does not answer, and `back` when it answers again.
        """
        self._name = name
        self._min_interval = min_interval
        self._away = away
        self._back = back
        self._is_unavailable = False
        self._wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Begin the next round now."""
        self._wanted.set()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._go_round(), name=self._name)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    @abstractmethod
    async def _ask(self, begun: float) -> bool:
        """Ask the questions of a round that began at `begun`; returns whether there were any."""

    @abstractmethod
    def _next_at(self, begun: float) -> float:
        """Return the latest start of the next round, by the loop's clock."""

    async def _go_round(self) -> None:
        while True:
            begun = asyncio.get_running_loop().time()
            self._wanted.clear()
            if await self._ask(begun):
                await asyncio.sleep(self._min_interval)
            pause = self._next_at(begun) - asyncio.get_running_loop().time()
            await wait_at_most(pause, self._wanted)

    async def _answer(self, question: Awaitable[Answer]) -> Answer | None:
        """Return the store's answer; None if the store does not answer in time."""
        try:
            answer = await within(PATIENCE, question)
        except Exception as error:  # noqa: BLE001 - whatever it is, the next round may succeed
            told = log.debug if self._is_unavailable else log.warning
            told(self._away, reason=str(error) or f"no answer within {PATIENCE:g} s")
            self._is_unavailable = True
            return None
        if self._is_unavailable:
            log.info(self._back)
        self._is_unavailable = False
        return answer


BEAT: Final = 2.0
"""Seconds between two claims."""

VALID: Final = 10.0
"""Seconds after a claim during which the share belongs to this runner."""

MARGIN: Final = 3.0
"""Seconds before the end of a share at which the runner stops using it: the claim took a while."""

CLAIM_INTERVAL: Final = 0.25
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
            min_interval=CLAIM_INTERVAL,
            away="shares of limits cannot be claimed; calls to models with limits will wait",
            back="shares of limits are claimed again",
        )
        self._shared = shared
        self._owner = owner
        self._limiters = limiters
        self._lapse: asyncio.TimerHandle | None = None
        limiters.share_out(self.wake)

    async def __aexit__(self, *_: object) -> None:
        await super().__aexit__()
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


QUICK_BEAT: Final = 0.5
"""The same for a model whose calls wait for the outcome of another runner's call."""

PAUSE_INTERVAL: Final = 0.05
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
            min_interval=PAUSE_INTERVAL,
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
