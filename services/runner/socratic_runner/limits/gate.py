"""The gate before a model: who may call it, and when."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import islice
from typing import Final

from socratic_bench.domain.pause import PauseNews
from socratic_bench.errors import ModelCallFailed
from socratic_bench.ports.models import FailureKind, Reply
from socratic_bench.ports.store import PauseAnswer
from socratic_runner.failure_classes import BUSY, MAY_BE_BILLED
from socratic_runner.limits.adaptive_limit import AdaptiveLimit
from socratic_runner.limits.ceilings import Ceilings, SharedCeilings
from socratic_runner.limits.latency import latency_of
from socratic_runner.limits.line import Passage, Place, Waiter, closed, passage_of
from socratic_runner.limits.pausing import USUAL, BackOff, Pausing

_PUSH_BACK: Final = BUSY | {FailureKind.TIMEOUT}


QUICK_MS: Final = 2000
"""A model whose calls take less on average has the next ones prepared while others are under way;
what it takes to prepare a call is nothing beside a longer one."""

SMOOTHING: Final = 0.2
"""The part that the last reply has in that average."""


LONG_PAUSE: Final = 60.0
"""Seconds of a pause from which on those who wait are to see whether they can wait for so long."""


class Gate:
    """Lets calls to one model through: as many at once as the model bears, and no more in a minute
    than the ceilings allow. First come, first served.

    All runs of this process that call the model share one. Where the ceilings are shared with other
    processes too, `set_share` says what part of them is this one's.
    """

    def __init__(
        self,
        *,
        most: int,
        clock: Callable[[], float] = time.monotonic,
        on_waiting: Callable[[], None] | None = None,
        back_off: BackOff = USUAL,
    ) -> None:
        """`most` calls are in flight at most, whatever the ceilings are. `clock` gives seconds that
        never go back. `on_waiting` is called when somebody comes to wait where nobody did, and
        there are ceilings. `back_off` says how long pauses are that nobody asked for.
        """
        self._most = most
        self._clock = clock
        self._on_waiting = on_waiting
        self.pausing = Pausing(back_off)
        """Whether, and for how long, a provider that pushed back keeps everybody waiting."""

        self._limit = AdaptiveLimit(most)
        self._ceilings = SharedCeilings()
        self._waiting: deque[Waiter] = deque()
        self._in_flight = 0
        self._latency_ms = math.inf
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    @property
    def in_flight(self) -> int:
        """Calls under way."""
        return self._in_flight

    @property
    def waiting(self) -> int:
        """Calls that wait to be let through."""
        return len(self._waiting)

    @property
    def concurrency_limit(self) -> float:
        """What the model bears at once, as far as is known; a share can be less."""
        return self._limit.value

    @property
    def ceilings(self) -> Ceilings:
        """The ceilings as they were set last, those of the whole account."""
        return self._ceilings.whole

    def set_ceilings(
        self,
        *,
        concurrency: int | None,
        requests_per_minute: int | None,
        tokens_per_minute: int | None,
    ) -> None:
        """Change what the account may do with the model; None: no limit is known."""
        ceilings = Ceilings(concurrency, requests_per_minute, tokens_per_minute)
        self._ceilings.set_whole(ceilings, self._clock())
        self._set_most()

    def set_most(self, most: int) -> None:
        """Change how many calls this process may have in flight."""
        self._most = most
        self._set_most()

    def set_share(self, parts: int, total: int) -> None:
        """Use `parts` of `total` of every ceiling; with 0 nobody is let through.

        Where there are no ceilings there is nothing to share, and this changes nothing.
        """
        self._ceilings.set_share(parts, total, self._clock())
        self._let_through()

    @property
    def paused_for(self) -> float:
        """Seconds that nobody is let through, whatever else happens."""
        return self.pausing.left(self._clock())

    def refusal(self, longest: float) -> ModelCallFailed | None:
        """What a run fails with that may wait for `longest` seconds; None: it can wait."""
        return self.pausing.refusal(longest, self._clock())

    def look_again(self) -> None:
        """Wake everybody who waits, to see whether there is anything to wait for."""
        for waiter in self._waiting:
            waiter.near.set()

    def pause_news(self, scope: str) -> PauseNews:
        """What is to be told of the pause under the name `scope`, and asked."""
        now = self._clock()
        return self.pausing.news(scope, now, waiting=self._could_call(now))

    def take_pause(self, answer: PauseAnswer | None) -> None:
        """What the store said of the pause; None: it does not answer."""
        if answer is None:
            self.pausing.go_alone()
        else:
            self.pausing.take(answer, self._clock())
            if answer.pause.until > LONG_PAUSE:
                self.look_again()
        self._let_through()

    @asynccontextmanager
    async def place(self, tokens: int) -> AsyncIterator[Place]:
        """A place in the line, for a call that takes `tokens`, input and output, at most.

        A call that was let through and ends without an outcome was not made, and gives back what it
        took; if it ends by an exception, such as a cancellation, it may have been made, and counts
        as it was announced. Raises GateClosed.
        """
        waiter = self._line_up(tokens)
        try:
            yield Place(waiter)
        except BaseException:
            if passage := passage_of(waiter):
                passage.has_outcome = True
            raise
        finally:
            self._step_out(waiter)

    def close(self) -> None:
        """Let nobody through any more: who waits and who comes gets GateClosed."""
        self._is_closed = True
        while self._waiting:
            waiter = self._waiting.popleft()
            waiter.admitted.cancel()
            waiter.near.set()
        self._let_through()

    def learn_of_reply(self, passage: Passage, reply: Reply) -> None:
        """What `Passage.replied` says."""
        self._limit.replied(self._in_flight, latency_of(reply))
        self.pausing.replied(passage.seen)
        if reply.latency_ms is not None:
            before = self._latency_ms if self._latency_ms < math.inf else reply.latency_ms
            self._latency_ms = before + (reply.latency_ms - before) * SMOOTHING
        read, written = reply.usage.input_tokens, reply.usage.output_tokens
        if read is not None and written is not None:
            self._ceilings.correct(passage.toll, read + written, self._clock())

    def learn_of_failure(self, passage: Passage, failure: ModelCallFailed) -> None:
        """What `Passage.failed` says."""
        now = self._clock()
        if failure.kind in _PUSH_BACK:
            self._limit.pushed_back(passage.call)
        if failure.kind in BUSY or failure.retry_after is not None:
            self.pausing.pushed_back(passage.seen, failure, now)
        if failure.kind not in MAY_BE_BILLED:
            self._ceilings.correct(passage.toll, 0, now)

    def _line_up(self, tokens: int) -> Waiter:
        if self._is_closed:
            raise closed()
        waiter = Waiter(tokens, asyncio.get_running_loop().create_future(), asyncio.Event())
        self._waiting.append(waiter)
        if len(self._waiting) <= max(1, self._in_flight):  # behind those it is not even near
            self._let_through()
        if len(self._waiting) == 1:
            self.pausing.ask(self._clock())
            if self._on_waiting is not None and self.ceilings.exist:
                self._on_waiting()
        return waiter

    def _step_out(self, waiter: Waiter) -> None:
        """Give back the place in the line, or what was given at its end."""
        if passage := passage_of(waiter):
            self._leave(passage)
        elif waiter in self._waiting:
            self._waiting.remove(waiter)
            self._let_through()

    def _opens_at(self, tokens: int, now: float) -> float:
        """When a call may pass if no other does; infinity while that depends on other calls."""
        if self._in_flight >= self._slots():
            return math.inf
        return max(self.pausing.opens_at(now), self._ceilings.ready_at(tokens, now))

    def _could_call(self, now: float) -> bool:
        """Whether nothing but a pause keeps a call waiting."""
        if not self._waiting or self._in_flight >= self._slots():
            return False
        return self._ceilings.ready_at(self._waiting[0].tokens, now) <= now

    def _slots(self) -> int:
        slots, share = int(self._limit.value), self._ceilings.concurrency
        return slots if share is None else min(slots, share)

    def _admit(self, tokens: int, now: float) -> Passage:
        self._in_flight += 1
        toll, seen = self._ceilings.take(tokens, now), self.pausing.begin(now)
        return Passage(self, self._limit.begin(), toll, seen)

    def _leave(self, passage: Passage) -> None:
        self._in_flight -= 1
        if not passage.has_outcome:
            now = self._clock()
            self._ceilings.give_back(passage.toll, now)
            self.pausing.was_not_made(passage.seen, now)
        self._let_through()

    def _set_most(self) -> None:
        self._limit.set_most(min(self._most, self.ceilings.concurrency or self._most))
        self._let_through()

    def _let_through(self) -> None:
        """Let all through who may pass now, and come back when the next one may."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = self._clock()
        while self._waiting:
            first = self._waiting[0]
            opens_at = self._opens_at(first.tokens, now)
            if opens_at > now:
                self._come_back(opens_at - now)
                self._call_near(now)
                return
            self._waiting.popleft()
            first.admitted.set_result(self._admit(first.tokens, now))
            first.near.set()

    def _call_near(self, now: float) -> None:
        """Have as many calls prepared as are under way, where nothing but those is in the way."""
        tokens = self._waiting[0].tokens
        if self._latency_ms > QUICK_MS or not self.pausing.is_open(now):
            return
        if max(self.pausing.opens_at(now), self._ceilings.ready_at(tokens, now)) <= now:
            for waiter in islice(self._waiting, self._in_flight):
                waiter.near.set()

    def _come_back(self, seconds: float) -> None:
        if seconds < math.inf:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(seconds, self._let_through)
