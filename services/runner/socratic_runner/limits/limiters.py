"""The limiters of a process. Calls that count towards the same limits of an account share one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.providers.registry import account_scope
from socratic_runner.limits.concurrency_limiter import ConcurrencyLimiter
from socratic_runner.limits.pausing import USUAL, BackOff


class ConcurrencyLimiters:
    """The limiters of this process, one for each scope."""

    def __init__(
        self,
        *,
        most: int,
        clock: Callable[[], float] = time.monotonic,
        back_off: BackOff = USUAL,
    ) -> None:
        """`most` limits the calls in flight to one model, whatever its ceilings are. `clock` gives
        monotonic seconds. `back_off` gives the length of a pause after a push-back.
        """
        self._most = most
        self._clock = clock
        self._back_off = back_off
        self._limiters: dict[str, ConcurrencyLimiter] = {}
        self._model_ids: dict[str, str] = {}
        self._on_waiting: Callable[[], None] | None = None
        self._on_pause_news: Callable[[], None] | None = None
        self._is_closed = False

    def limiter_for(self, model: TutorModel, client_concurrency: int | None) -> ConcurrencyLimiter:
        """The limiter of `model`, with the ceilings that `model` has now.

        `client_concurrency` limits the calls of this process's client; None means no limit. Other
        processes do not share it.
        """
        scope = account_scope(model)
        limiter = self._limiters.get(scope)
        if limiter is None:
            limiter = self._limiters[scope] = self._new_limiter()
            self._model_ids[scope] = model.id
        limits = model.limits
        limiter.set_most(min(self._most, client_concurrency or self._most))
        limiter.set_ceilings(
            concurrency=limits.concurrency,
            requests_per_minute=limits.requests_per_minute,
            tokens_per_minute=limits.tokens_per_minute,
        )
        return limiter

    def share_out(self, on_waiting: Callable[[], None]) -> None:
        """Have every new limiter admit nothing until `set_share` gives it a share of its ceilings.

        Call this before the first `limiter_for`. A limiter calls `on_waiting` when a first call
        begins to wait.
        """
        self._on_waiting = on_waiting

    def share_pauses(self, on_news: Callable[[], None]) -> None:
        """Have every new limiter admit nothing until `take_pause` says how its model is paused.

        Call this before the first `limiter_for`. A limiter calls `on_news` when the store should
        learn something.
        """
        self._on_pause_news = on_news

    def forget_unused(self, used: Iterable[ConcurrencyLimiter]) -> None:
        """Forget the limiters at rest, except those that are `used`."""
        kept = set(used)
        unused = [
            scope
            for scope, limiter in self._limiters.items()
            if limiter not in kept and limiter.is_at_rest
        ]
        for scope in unused:
            del self._limiters[scope], self._model_ids[scope]

    def close(self) -> None:
        """Close every limiter, including those that `limiter_for` makes later."""
        self._is_closed = True
        for limiter in self._limiters.values():
            limiter.close()

    def reopen(self) -> None:
        """Admit calls again, after `close`."""
        self._is_closed = False
        for limiter in self._limiters.values():
            limiter.reopen()

    def __iter__(self) -> Iterator[tuple[str, ConcurrencyLimiter]]:
        """The scopes and their limiters."""
        return iter(self._limiters.items())

    def with_model_ids(self) -> Iterator[tuple[str, ConcurrencyLimiter]]:
        """The limiters, each with the id of its model; several scopes may have the same model."""
        return ((self._model_ids[scope], limiter) for scope, limiter in self._limiters.items())

    def _new_limiter(self) -> ConcurrencyLimiter:
        limiter = ConcurrencyLimiter(
            most=self._most,
            clock=self._clock,
            on_waiting=self._on_waiting,
            back_off=self._back_off,
        )
        if self._on_pause_news is not None:
            limiter.pausing.share(self._on_pause_news)
        if self._on_waiting is not None:
            limiter.set_share(0, 1)
        if self._is_closed:
            limiter.close()
        return limiter
