"""The limiter of a model: it decides which call may be made, and when."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Final

from socratic_bench.domain.pause import PauseNews
from socratic_bench.domain.run import NORMAL, Priority
from socratic_bench.errors import FailureKind, ModelCallFailed
from socratic_bench.ports.models import Reply
from socratic_bench.ports.stores.limits import PauseAnswer
from socratic_runner.conversations.call_outcomes import BUSY, MAY_BE_BILLED
from socratic_runner.limits.adaptive_limit import AdaptiveLimit, latency_of
from socratic_runner.limits.ceilings import MINUTE, Ceilings, SharedCeilings
from socratic_runner.limits.pausing import USUAL, BackOff, Pausing
from socratic_runner.limits.ticket import Permit, Ticket, WaitingCall, WaitingCalls, closed

_PUSH_BACK: Final = BUSY | {FailureKind.TIMEOUT}
"""Failures that cut the concurrency limit."""

QUICK_MS: Final = 2000
"""Milliseconds. The runner prepares calls to a model that replies faster, on average, while others
are in flight. Beside a longer call the preparation takes no time."""

SMOOTHING: Final = 0.2
"""Weight of the last reply in that moving average."""

LONGEST_OVERDRAFT: Final = 600.0
"""Seconds after which an overdrawn rate counts as recovered. A rate without a share never
recovers."""

LONG_PAUSE: Final = 60.0
"""Seconds. A longer pause makes every waiting call check its deadline."""


class ConcurrencyLimiter:
    """Admits calls to one model: as many at once as the model bears, and no more in a minute than
    the ceilings allow. First come, first served, and both priorities in turn.

    All runs of this process that call the model share one limiter. `set_share` sets this process's
    share of ceilings that other processes use too.
    """

    def __init__(
        self,
        *,
        most: int,
        clock: Callable[[], float] = time.monotonic,
        on_waiting: Callable[[], None] | None = None,
        back_off: BackOff = USUAL,
    ) -> None:
        """`most` limits the calls in flight, whatever the ceilings are. `clock` gives monotonic
        seconds. The limiter calls `on_waiting` when a first call begins to wait and there are
        ceilings. `back_off` gives the length of pauses that the provider did not specify.
        """
        self._most = most
        self._clock = clock
        self._on_waiting = on_waiting
        self.pausing = Pausing(back_off)
        """Whether, and for how long, a provider that pushed back pauses all calls."""

        self._limit = AdaptiveLimit(most)
        self._ceilings = SharedCeilings()
        self._waiting = WaitingCalls()
        self._in_flight = 0
        self._begun_at = -math.inf
        """When the last call began."""

        self._latency_ms = math.inf
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    @property
    def in_flight(self) -> int:
        """Calls that hold a permit."""
        return self._in_flight

    @property
    def waiting(self) -> int:
        """Calls that wait for a permit."""
        return len(self._waiting)

    @property
    def concurrency_limit(self) -> float:
        """Calls that the model bears at once, as far as the limiter knows; a share can be less."""
        return self._limit.value

    @property
    def slots(self) -> int:
        """Calls that may be in flight at the moment: the concurrency limit, or a smaller share."""
        slots, share = int(self._limit.value), self._ceilings.concurrency
        return slots if share is None else min(slots, share)

    @property
    def ceilings(self) -> Ceilings:
        """The ceilings of the whole account, as they were set last."""
        return self._ceilings.whole

    def set_ceilings(
        self,
        *,
        concurrency: int | None,
        requests_per_minute: int | None,
        tokens_per_minute: int | None,
    ) -> None:
        """Set the account's ceilings for the model; None means that no ceiling is known."""
        ceilings = Ceilings(concurrency, requests_per_minute, tokens_per_minute)
        self._ceilings.set_whole(ceilings, self._clock())
        self._set_most()

    def set_most(self, most: int) -> None:
        """Set how many calls this process may have in flight."""
        self._most = most
        self._set_most()

    def set_share(self, parts: int, total: int) -> None:
        """Use `parts` of `total` of every ceiling; 0 parts admit no call.

        Without ceilings there is nothing to share, and this changes nothing.
        """
        self._ceilings.set_share(parts, total, self._clock())
        self._admit_waiting()

    @property
    def is_at_rest(self) -> bool:
        """Whether a new limiter keeps the same promises; it only has to discover the limit again.

        No call is in flight or waits, no pause is in force or has to be told to the store, and the
        rates remember nothing: no call of the last minute, and none that overdrew them.
        """
        now = self._clock()
        has_calls = self._in_flight > 0 or len(self._waiting) > 0
        is_paused = self.pausing.has_news or self.pausing.left(now) > 0
        remembered = LONGEST_OVERDRAFT if self._ceilings.is_overdrawn(now) else MINUTE
        return not has_calls and not is_paused and self._begun_at + remembered <= now

    @property
    def paused_for(self) -> float:
        """Seconds for which the limiter certainly admits no call."""
        return self.pausing.left(self._clock())

    def refusal(self, longest: float) -> ModelCallFailed | None:
        """The failure of a run that may wait for `longest` seconds; None if the wait is shorter."""
        return self.pausing.refusal(longest, self._clock())

    def look_again(self) -> None:
        """Wake every waiting call, so that it checks whether waiting is still of use."""
        for waiting_call in self._waiting:
            waiting_call.come_near()

    def pause_news(self, scope: str) -> PauseNews:
        """Return the news and the question for the store about the pause of `scope`."""
        now = self._clock()
        return self.pausing.news(scope, now, waiting=self._could_call(now))

    def take_pause(self, answer: PauseAnswer | None) -> None:
        """Apply the store's answer about the pause; None means that the store did not answer."""
        if answer is None:
            self.pausing.go_alone()
        else:
            self.pausing.take(answer, self._clock())
            if answer.pause.until > LONG_PAUSE:
                self.look_again()
        self._admit_waiting()

    @contextmanager
    def ticket(self, tokens: int, priority: Priority = NORMAL) -> Iterator[Ticket]:
        """A ticket for a call that takes at most `tokens`, input and output together.

        A permit that ends without an outcome is refunded: its call was not made. A permit that ends
        by an exception, such as a cancellation, stays charged: its call may have been made. Raises
        LimiterClosed.
        """
        waiting_call = self._enqueue(WaitingCall(tokens, priority))
        try:
            yield Ticket(waiting_call)
        except BaseException:
            if waiting_call.permit is not None:
                waiting_call.permit.has_outcome = True
            raise
        finally:
            self._give_up_ticket(waiting_call)

    def close(self) -> None:
        """Admit no more calls: those that wait, and those that come, get LimiterClosed."""
        self._is_closed = True
        while self._waiting:
            self._waiting.take().refuse()
        self._admit_waiting()

    def reopen(self) -> None:
        """Admit calls again, after `close`."""
        self._is_closed = False

    def learn_of_reply(self, permit: Permit, reply: Reply) -> None:
        """Learn from a reply, as `Permit.replied` tells."""
        self._limit.replied(self._in_flight, latency_of(reply))
        self.pausing.replied(permit.seen)
        if reply.latency_ms is not None:
            before = self._latency_ms if self._latency_ms < math.inf else reply.latency_ms
            self._latency_ms = before + (reply.latency_ms - before) * SMOOTHING
        read, written = reply.usage.input_tokens, reply.usage.output_tokens
        if read is not None and written is not None:
            self._ceilings.correct(permit.charge, read + written, self._clock())

    def learn_of_failure(self, permit: Permit, failure: ModelCallFailed) -> None:
        """Learn from a failure, as `Permit.failed` tells."""
        now = self._clock()
        if failure.kind in _PUSH_BACK:
            self._limit.pushed_back(permit.call)
        if failure.kind in BUSY or failure.retry_after is not None:
            self.pausing.pushed_back(permit.seen, failure, now)
        if failure.kind not in MAY_BE_BILLED:
            self._ceilings.correct(permit.charge, 0, now)

    def _enqueue(self, waiting_call: WaitingCall) -> WaitingCall:
        if self._is_closed:
            raise closed()
        self._waiting.append(waiting_call)
        if self._waiting.ahead_of(waiting_call) < max(1, self._in_flight):  # a later one waits long
            self._admit_waiting()
        if len(self._waiting) == 1:
            self.pausing.ask(self._clock())
            if self._on_waiting is not None and self.ceilings.exist:
                self._on_waiting()
        return waiting_call

    def _give_up_ticket(self, waiting_call: WaitingCall) -> None:
        """Leave the waiting line, or end the permit."""
        if waiting_call.permit is not None:
            self._end_permit(waiting_call.permit)
        elif waiting_call in self._waiting:
            self._waiting.remove(waiting_call)
            self._admit_waiting()

    def _opens_at(self, tokens: int, now: float) -> float:
        """Return when the next call may begin; infinity while that depends on calls in flight."""
        return math.inf if self._in_flight >= self.slots else self._ready_at(tokens, now)

    def _ready_at(self, tokens: int, now: float) -> float:
        """Return when pause and rates admit a call, whatever is in flight."""
        return max(self.pausing.opens_at(now), self._ceilings.ready_at(tokens, now))

    def _could_call(self, now: float) -> bool:
        """Whether only a pause keeps a call waiting."""
        if not self._waiting or self._in_flight >= self.slots:
            return False
        return self._ceilings.ready_at(self._waiting.first().tokens, now) <= now

    def _admit(self, tokens: int, now: float) -> Permit:
        self._in_flight += 1
        self._begun_at = now
        charge, seen = self._ceilings.take(tokens, now), self.pausing.begin(now)
        return Permit(self, self._limit.begin(), charge, seen)

    def _end_permit(self, permit: Permit) -> None:
        self._in_flight -= 1
        if not permit.has_outcome:
            now = self._clock()
            self._ceilings.give_back(permit.charge, now)
            self.pausing.was_not_made(permit.seen, now)
        self._admit_waiting()

    def _set_most(self) -> None:
        self._limit.set_most(min(self._most, self.ceilings.concurrency or self._most))
        self._admit_waiting()

    def _admit_waiting(self) -> None:
        """Admit every call that may be made now, and set a timer for the next one."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = self._clock()
        while self._waiting:
            first = self._waiting.first()
            opens_at = self._opens_at(first.tokens, now)
            if opens_at > now:
                self._admit_later(opens_at - now)
                self._prepare_next(now)
                return
            self._waiting.take().admit(self._admit(first.tokens, now))

    def _prepare_next(self, now: float) -> None:
        """Wake as many waiting calls as are in flight, if only full slots keep them waiting."""
        # With a slow model, early leases would only hold turns and money.
        if self._latency_ms > QUICK_MS or not self.pausing.is_open(now):
            return
        if self._ready_at(self._waiting.first().tokens, now) <= now:
            for waiting_call in islice(self._waiting, self._in_flight):
                if not waiting_call.is_near:  # the others wait for their permit only
                    waiting_call.come_near()

    def _admit_later(self, seconds: float) -> None:
        if seconds < math.inf:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(seconds, self._admit_waiting)
