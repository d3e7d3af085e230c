"""The pause of a model, as far as one process knows."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from socratic_bench.domain.pause import NONE, PauseNews, PushBack, after
from socratic_bench.errors import FailureKind, ModelCallFailed
from socratic_bench.ports.stores.limits import PauseAnswer

LONGEST_REASON: Final = 300
"""Characters of the reason for a pause at most."""


@dataclass(frozen=True, slots=True)
class BackOff:
    """The length of pauses that the provider did not specify."""

    first: float = 0.5
    """Seconds of the first pause in a row, doubled with each further one."""

    longest: float = 60.0
    """Seconds of a pause at most. Most limits of providers hold for a minute."""

    draw: Callable[[], float] = random.random
    """Returns a number evenly from 0 to 1: a pause lasts from half of its length to all of it."""

    def push_back(self, failure: ModelCallFailed) -> PushBack:
        """Return the push-back that a failure means, with its part drawn by chance."""
        part = 0.5 + self.draw() / 2
        reason = str(failure)[:LONGEST_REASON]
        return PushBack(
            self.first, self.longest, part, failure.retry_after, str(failure.kind), reason
        )


VALID: Final = 6.0
"""Seconds for which an answer of the store about a pause holds. A limiter with calls asks more
often; a limiter without calls asks before its first one."""

USUAL: Final = BackOff()


class Seen(NamedTuple):
    """The state of a pause when a call began."""

    change: int
    """The number of the last change of the pause in this process."""

    number: int
    """The number of the last pause, as its keeper counts."""


class Pausing:
    """The pause of one model, kept by this process alone or by the store for all runners.

    A pause that the process keeps changes at once. A pause that the store keeps is the store's last
    answer; a push-back or a reply that the process learns itself counts here at once, and is news
    until the store learns it. While the store does not answer, the process keeps the pause alone.

    Times are monotonic seconds; the caller passes the present time as `now`.
    """

    def __init__(self, back_off: BackOff) -> None:
        self._back_off = back_off
        self._pause = NONE
        self._change = 0
        self._may_call = False
        """Whether the store admits the next call, after pauses in a row."""

        self._on_news: Callable[[], None] | None = None
        self._is_alone = True
        """Whether this process keeps the pause: there is no store, or it does not answer."""

        self._known_until = math.inf
        """Until when the last answer of the store is new enough to begin a call by it."""

        self._news: PauseNews | None = None
        """The news for the store, without their scope."""

    @property
    def has_news(self) -> bool:
        """Whether there is news for the store."""
        return self._news is not None

    def is_open(self, now: float) -> bool:
        """Tell whether calls may begin side by side, not one by one."""
        return now <= self._known_until and self._pause.is_over_for_all

    def share(self, on_news: Callable[[], None]) -> None:
        """Let the store keep the pause from now on; there is a call of `on_news` for each news."""
        self._on_news = on_news
        self._is_alone, self._known_until = False, -math.inf

    def opens_at(self, now: float) -> float:
        """Return when the next call may begin; infinity while the store has to admit it."""
        if now > self._known_until:
            return math.inf
        if now < self._pause.until or self._pause.is_over_for_all:
            return self._pause.until
        if self._is_alone:
            return self._pause.next_call
        return now if self._may_call else math.inf

    def asks_at(self) -> float:
        """Return when to ask the store to admit a waiting call; infinity if it need not."""
        if self._pause.is_over_for_all or self._may_call:
            return math.inf
        return max(self._pause.until, self._pause.next_call)

    def ask(self, now: float) -> None:
        """Ask the store because a first call begins to wait."""
        if self._on_news is not None and not self.is_open(now):
            self._on_news()

    def begin(self, now: float) -> Seen:
        """Note that a call begins; returns the state of the pause."""
        if not self._pause.is_over_for_all:
            self._set_next_call(now + self._pause.gap, may_call=False)
        return Seen(self._change, self._pause.number)

    def was_not_made(self, seen: Seen, now: float) -> None:
        """Note that an admitted call was not made: another one may begin in its place."""
        if seen.change == self._change and not self._pause.is_over_for_all:
            self._set_next_call(now, may_call=True)

    def replied(self, seen: Seen) -> None:
        """Note the reply to a call."""
        if seen.change == self._change and self._pause.in_a_row:
            self._pause = self._pause._replace(in_a_row=0)
            self._tell(PauseNews("", seen.number, replied=True))

    def pushed_back(self, seen: Seen, failure: ModelCallFailed, now: float) -> None:
        """Note that the provider had no time for a call.

        The failure of a call that began before the pause changes nothing, unless the provider asks
        to wait.
        """
        is_current = seen.change == self._change
        if not is_current and failure.retry_after is None:
            return
        told = PauseNews("", seen.number, pushed_back=self._back_off.push_back(failure))
        number = self._pause.number
        self._pause, _ = after(
            self._pause, told._replace(seen=number if is_current else number - 1), now
        )
        if not self._is_alone:
            self._pause = self._pause._replace(number=number)  # the store counts pauses
        if is_current:
            self._may_call = False
            self._change += 1
        self._tell(told)

    def left(self, now: float) -> float:
        """Return the seconds until the end of the pause."""
        return max(0.0, self._pause.until - now)

    def refusal(self, longest: float, now: float) -> ModelCallFailed | None:
        """Return the failure of a run that may wait for `longest` seconds; None if it can wait."""
        left = self.left(now)
        if left <= max(longest, self._back_off.longest):
            return None
        message = f"not called: paused for {left:.0f} s more after {self._pause.reason}"
        return ModelCallFailed(FailureKind(self._pause.kind), message, retryable=False)

    def news(self, scope: str, now: float, *, waiting: bool) -> PauseNews:
        """Take the news for the store, with the question for a call if one is `waiting`."""
        news, self._news = self._news or PauseNews("", self._pause.number), None
        wants_call = waiting and news.pushed_back is None and self.asks_at() <= now
        return news._replace(scope=scope, wants_call=wants_call)

    def take(self, answer: PauseAnswer, now: float) -> None:
        """Apply the store's answer."""
        if self._news is not None:
            return  # the answer is older than the news
        pause = answer.pause.since(now)
        if pause.number != self._pause.number:
            self._change += 1
        self._pause, self._may_call = pause, answer.may_call
        self._is_alone, self._known_until = False, now + VALID

    def go_alone(self) -> None:
        """Keep the pause alone, because the store does not answer."""
        self._is_alone, self._known_until = True, math.inf

    def _set_next_call(self, at: float, *, may_call: bool) -> None:
        self._pause = self._pause._replace(next_call=at)
        self._may_call = may_call

    def _tell(self, news: PauseNews) -> None:
        if self._on_news is not None:
            self._news = _both(self._news, news)
            self._on_news()


def _both(first: PauseNews | None, second: PauseNews) -> PauseNews:
    """Join two pieces of news that the store has not learnt yet."""
    if first is None:
        return second
    pushed_back = second.pushed_back or first.pushed_back
    if first.pushed_back is not None and second.pushed_back is not None:
        pushed_back = max(
            (first.pushed_back, second.pushed_back), key=lambda each: each.asked or -1.0
        )
    return PauseNews("", max(first.seen, second.seen), first.replied or second.replied, pushed_back)
