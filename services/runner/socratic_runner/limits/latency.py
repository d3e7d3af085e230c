"""Whether a model's latency has risen so far that it is being asked too much at once."""

from __future__ import annotations

from statistics import median
from typing import Final, NamedTuple

from socratic_bench.ports.models import Reply

FEWEST_SAMPLES: Final = 24
"""Of a window; under a limit of more than twice as many it has half as many as the limit. Where
latencies scatter by a factor of 1.5, the median of 24 scatters by 1.1."""

RISEN: Final = 2.0
"""Times the baseline from which on latency has risen too far."""

STEADY: Final = 1.25
"""Times the baseline up to which a median may be chance, under a load that grows."""

SINKING: Final = 0.2
"""The part of the way, on a scale of ratios, that the baseline goes to a median below it."""

RISING: Final = 0.01
"""The same for one above it. Under limits to some 200 that is less than the load grows by."""

PATIENCE: Final = 4
"""Windows in a row that are too slow, each under a smaller load than the one before."""

RELIEF: Final = 0.7
"""By what latency has fallen after them, if load was the cause: from the second one on, which is
the first that saw the load cut, the limit came down to half."""

SHORTEST_MS: Final = 50
"""Latencies below are not told apart: there this process, not the model, makes the difference."""

START_IN_TOKENS: Final = 50
"""How many tokens can about be written in the time that passes before the first one."""


class Latency(NamedTuple):
    """How slow one reply was, made comparable with other replies of the same kind."""

    is_first_token: bool
    """Whether it is the time to the first token, or the whole latency by the length of the text."""

    value: float


def latency_of(reply: Reply) -> Latency | None:
    """How slow a reply was; None where it does not say.

    The time to the first token hardly depends on the answer. Where that is not known, the latency
    is divided by the tokens that were written, and by some for the time before the first.
    """
    if reply.first_token_ms is not None:
        return Latency(is_first_token=True, value=max(reply.first_token_ms, SHORTEST_MS))
    if reply.latency_ms is None:
        return None
    written = (reply.usage.output_tokens or 0) + START_IN_TOKENS
    return Latency(is_first_token=False, value=max(reply.latency_ms, SHORTEST_MS) / written)


class LatencyTrend:
    """Compares the median of the last replies with a baseline: the best that was sustained.

    A queue builds up at a server before it refuses anything; that is the idea of TCP Vegas (Brakmo
    and Peterson 1995) and of the gradient limits in Netflix's concurrency-limits. Latencies of
    models scatter widely, so that only medians of whole windows are compared.

    The baseline follows what is quicker soon, and what is slower late, and only where load cannot
    be the cause: with a small difference, or under a load that did not grow. Otherwise it would
    creep up together with the load. Latency that stays high while the limit is cut again and again
    is not caused by load: the model has become slower, and that is its baseline from then on.
    """

    def __init__(self) -> None:
        self._is_first_token: bool | None = None
        self._window: list[float] = []
        self._window_size = FEWEST_SAMPLES
        self._last_limit = 0.0
        self._unseen = 0
        """Replies that still come from another load."""

        self._baseline: float | None = None
        self._too_slow: list[float] = []
        """The medians of the last windows if all of them were too slow."""

    def add(self, latency: Latency, limit: float) -> bool | None:
        """Take account of a reply that came under a `limit`.

        None: its window is not full yet. True: latency has risen too far; whoever asks lowers the
        load, and says so. False: it has not.
        """
        if self._unseen:
            self._unseen -= 1
            return None
        if self._is_first_token != latency.is_first_token:
            self._is_first_token = latency.is_first_token
            self._window, self._baseline, self._too_slow = [], None, []
        if not self._window:
            self._window_size = max(FEWEST_SAMPLES, int(limit / 2))
        self._window.append(latency.value)
        if len(self._window) < self._window_size:
            return None
        middle = median(self._window)
        self._window.clear()
        load_grew, self._last_limit = limit > self._last_limit, limit
        return self._has_risen(middle, load_grew=load_grew)

    def load_changed(self, round_of_calls: int) -> None:
        """Start anew after so many replies. To look at calls that are begun from now on instead
        would prefer the quick ones, whose replies are the first to come.
        """
        self._window.clear()
        self._unseen = round_of_calls

    def _has_risen(self, middle: float, *, load_grew: bool) -> bool:
        baseline = self._baseline
        if baseline is None:
            self._baseline = middle
            return False
        ratio = middle / baseline
        if ratio < RISEN:
            self._too_slow.clear()
            if ratio < STEADY or not load_grew:
                self._baseline = baseline * ratio ** (SINKING if ratio < 1 else RISING)
            return False
        if len(self._too_slow) == PATIENCE:
            has_fallen = middle < self._too_slow[1] * RELIEF
            self._too_slow.clear()
            if not has_fallen:
                self._baseline = middle
                return False
        self._too_slow.append(middle)
        return True
