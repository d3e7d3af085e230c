"""Whether a model is paused, as far as one process knows."""

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
"""Characters that are kept of why a model is paused."""


@dataclass(frozen=True, slots=True)
class BackOff:
    """How long pauses are that nobody asked for."""

    first: float = 0.5
    """Seconds of the first in a row, doubled with each further one."""

    longest: float = 60.0
    """Seconds: the ceiling of that. Most limits are so much in a minute."""

    draw: Callable[[], float] = random.random
    """Evenly from 0 to 1: a pause lasts from half of that to all of it."""

    def push_back(self, failure: ModelCallFailed) -> PushBack:
        part = 0.5 + self.draw() / 2
        reason = str(failure)[:LONGEST_REASON]
        return PushBack(
            self.first, self.longest, part, failure.retry_after, str(failure.kind), reason
        )


VALID: Final = 6.0
"""Seconds that what a store says of a pause is gone by. It is asked more often where the model is
called; who was idle asks it first."""

USUAL: Final = BackOff()


class Seen(NamedTuple):
    """What was known of pauses when a call began."""

    change: int
    """Which change of what is known it followed, in this process."""

    number: int
    """The pause that was the last one then, by its keeper's count."""


class Pausing:
    """The pause of one model: kept here alone, or by a store for all who call the model.

    Kept here, it changes at once. Kept by a store, it is what the store said last; what this
    process learns itself holds for it at once, and is news until it is told. While the store does
    not answer, the process goes by what it knows.

    Times are seconds that never go back; the caller passes the present one.
    """

    def __init__(self, back_off: BackOff) -> None:
        self._back_off = back_off
        self._pause = NONE
        self._change = 0
        self._may_call = False
        """Whether the store lets the next call through, where there are pauses in a row."""

        self._on_news: Callable[[], None] | None = None
        self._is_alone = True
        """Whether no store keeps it, or none answers."""

        self._known_until = math.inf
        """For how long what the store said last is new enough to begin a call by it."""

        self._news: PauseNews | None = None
        """What is to be told, but for its scope."""

    @property
    def has_news(self) -> bool:
        """Whether there is something to tell."""
        return self._news is not None

    def is_open(self, now: float) -> bool:
        """Whether calls need not be made one by one."""
        return now <= self._known_until and self._pause.is_over_for_all

    def share(self, on_news: Callable[[], None]) -> None:
        """From now on a store keeps it. `on_news` is called when there is something to tell."""
        self._on_news = on_news
        self._is_alone, self._known_until = False, -math.inf

    def opens_at(self, now: float) -> float:
        """When the next call may be made; infinity while that is for the store to say."""
        if now > self._known_until:
            return math.inf
        if now < self._pause.until or self._pause.is_over_for_all:
            return self._pause.until
        if self._is_alone:
            return self._pause.next_call
        return now if self._may_call else math.inf

    def asks_at(self) -> float:
        """When the store is to be asked for a call that waits; infinity: it need not be."""
        if self._pause.is_over_for_all or self._may_call:
            return math.inf
        return max(self._pause.until, self._pause.next_call)

    def ask(self, now: float) -> None:
        """Somebody comes to wait where nobody did."""
        if self._on_news is not None and not self.is_open(now):
            self._on_news()

    def begin(self, now: float) -> Seen:
        """A call is let through."""
        if not self._pause.is_over_for_all:
            self._set_next_call(now + self._pause.gap, may_call=False)
        return Seen(self._change, self._pause.number)

    def was_not_made(self, seen: Seen, now: float) -> None:
        """A call that was let through was not made: another may be, in its place."""
        if seen.change == self._change and not self._pause.is_over_for_all:
            self._set_next_call(now, may_call=True)

    def replied(self, seen: Seen) -> None:
        """A call was answered."""
        if seen.change == self._change and self._pause.in_a_row:
            self._pause = self._pause._replace(in_a_row=0)
            self._tell(PauseNews("", seen.number, replied=True))

    def pushed_back(self, seen: Seen, failure: ModelCallFailed, now: float) -> None:
        """A provider had no time for a call. One that began before the pause says nothing new,
        unless the provider asks to wait.
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
            self._pause = self._pause._replace(number=number)  # its keeper counts
        if is_current:
            self._may_call = False
            self._change += 1
        self._tell(told)

    def left(self, now: float) -> float:
        """Seconds until the pause is over."""
        return max(0.0, self._pause.until - now)

    def refusal(self, longest: float, now: float) -> ModelCallFailed | None:
        """What a run fails with that may wait for `longest` seconds; None: it can wait."""
        left = self.left(now)
        if left <= max(longest, self._back_off.longest):
            return None
        message = f"not called: paused for {left:.0f} s more after {self._pause.reason}"
        return ModelCallFailed(FailureKind(self._pause.kind), message, retryable=False)

    def news(self, scope: str, now: float, *, waiting: bool) -> PauseNews:
        """What is to be told, and asked if somebody is `waiting`; it counts as told."""
        news, self._news = self._news or PauseNews("", self._pause.number), None
        wants_call = waiting and news.pushed_back is None and self.asks_at() <= now
        return news._replace(scope=scope, wants_call=wants_call)

    def take(self, answer: PauseAnswer, now: float) -> None:
        """What the store said."""
        if self._news is not None:
            return  # The store does not know yet what was learnt meanwhile.
        pause = answer.pause.since(now)
        if pause.number != self._pause.number:
            self._change += 1
        self._pause, self._may_call = pause, answer.may_call
        self._is_alone, self._known_until = False, now + VALID

    def go_alone(self) -> None:
        """The store does not answer."""
        self._is_alone, self._known_until = True, math.inf

    def _set_next_call(self, at: float, *, may_call: bool) -> None:
        self._pause = self._pause._replace(next_call=at)
        self._may_call = may_call

    def _tell(self, news: PauseNews) -> None:
        if self._on_news is not None:
            self._news = _both(self._news, news)
            self._on_news()


def _both(first: PauseNews | None, second: PauseNews) -> PauseNews:
    """What two pieces of news amount to that were not told yet."""
    if first is None:
        return second
    pushed_back = second.pushed_back or first.pushed_back
    if first.pushed_back is not None and second.pushed_back is not None:
        pushed_back = max(
            (first.pushed_back, second.pushed_back), key=lambda each: each.asked or -1.0
        )
    return PauseNews("", max(first.seen, second.seen), first.replied or second.replied, pushed_back)
