"""Finds out by trial, from the latency of replies, how many calls to a model may be in flight."""

from __future__ import annotations

import math
from enum import Enum, auto
from statistics import median
from typing import Final, NamedTuple

from socratic_bench.ports.models import Reply

FEWEST_SAMPLES: Final = 24
"""Replies in a window. Under a limit of more than 48 calls a window has half as many replies as the
limit has calls. Where latencies scatter by a factor of 1.5, the median of 24 scatters by 1.1."""

RISEN: Final = 2.0
"""A median of this many times the baseline is too slow."""

STEADY: Final = 1.25
"""Under a growing load, a median of less than this many times the baseline may be chance."""

SINKING: Final = 0.2
"""The part of the way, on a scale of ratios, that the baseline moves to a median below it."""

RISING: Final = 0.01
"""The same for a median above it. Under limits to some 200 the load grows faster than that."""

PATIENCE: Final = 4
"""Slow windows in a row, each under a smaller load, after which the trend asks whether cuts
help."""

RELIEF: Final = 0.7
"""The part of the second slow median that is left after the last one if load was the cause. The
second window is the first one after a cut; from then on the limit fell to half."""

SHORTEST_MS: Final = 50
"""Latencies below count as this one: there this process, not the model, makes the difference."""

START_IN_TOKENS: Final = 50
"""Tokens that a model writes, roughly, in the time before its first one."""


class Latency(NamedTuple):
    """The latency of one reply, comparable with other replies of the same kind."""

    is_first_token: bool
    """Whether `value` is the milliseconds to the first token, or else the milliseconds per
    token."""

    value: float


def latency_of(reply: Reply) -> Latency | None:
    """Return the latency of a reply; None where the reply does not say.

    The time to the first token hardly depends on the answer. Without it, the whole latency is
    divided by the tokens that the model wrote and START_IN_TOKENS.
    """
    if reply.first_token_ms is not None:
        return Latency(is_first_token=True, value=max(reply.first_token_ms, SHORTEST_MS))
    if reply.latency_ms is None:
        return None
    written = (reply.usage.output_tokens or 0) + START_IN_TOKENS
    return Latency(is_first_token=False, value=max(reply.latency_ms, SHORTEST_MS) / written)


class LatencyTrend:
    """Compares the median latency of the last replies with a baseline, the best sustained median.

    A server queues calls before it refuses any. TCP Vegas (Brakmo and Peterson 1995) and the
    gradient limits of Netflix's concurrency-limits use that. Latencies of models scatter widely, so
    the trend compares only medians of whole windows.

    The baseline follows a quicker median soon. It follows a slower one late, and only where load
    cannot be the cause: with a small difference, or under a load that did not grow. Otherwise the
    baseline would creep up with the load. Latency that stays high after several cuts of the limit
    has another cause: the model became slower, and the trend starts from its new median.
    """

    def __init__(self) -> None:
        self._is_first_token: bool | None = None
        self._window: list[float] = []
        self._window_size = FEWEST_SAMPLES
        self._last_limit = 0.0
        self._unseen = 0
        """Replies still to come from calls under another load."""

        self._baseline: float | None = None
        self._too_slow: list[float] = []
        """The medians of the last windows, if all of these were too slow."""

    def add(self, latency: Latency, limit: float) -> bool | None:
        """Add a reply that came under a `limit`.

        Returns None while the window is not full, else whether the window was too slow. After True
        the caller lowers the load and calls `load_changed`.
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
        """Skip the next `round_of_calls` replies, then begin a new window.

        A window of the calls that begin from now on would prefer quick calls, whose replies come
        first.
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


SECOND_LIMIT: Final = 8.0
"""The limit after the first reply."""

FIRST_CUT: Final = 0.5
"""The part of the limit that a push-back leaves during slow start. Slow start overshoots
twofold."""

# D-068: TCP halves its window. Half would leave a quarter of the provider unused.
CUT: Final = 0.7
"""The part that a push-back leaves later, when the limit was at most one too high."""

LAST_STEP: Final = 32
"""The last step to a limit that was pushed back takes this many replies at least. Otherwise a
server with room for a few calls would refuse every second call."""

LATENCY_CUT: Final = 0.8
"""The part of the limit that risen latency leaves."""


class _Phase(Enum):
    ALONE = auto()
    """No reply yet: one call at a time, so that a wrong key costs one call."""
    SLOW_START = auto()
    """The limit grows by one for every reply, and so doubles in a round."""
    PROBING = auto()
    """The limit grows by one in a round."""


class AdaptiveLimit:
    """Raises the limit while the provider replies, and cuts it when the provider pushes back.

    TCP does the same with its window: slow start until the first push-back, then additive increase
    and multiplicative decrease (Jacobson 1988, "Congestion Avoidance and Control"). Callers that
    share a server so come to equal shares without knowing of each other (Chiu and Jain 1989). A
    later cut keeps 0.7 of the limit, as in CUBIC (RFC 9438, 4.6). Risen latency cuts the limit,
    too; see LatencyTrend.

    One cut answers for all calls that were in flight at that time: their failures come from the old
    limit and do not cut it again. The limit grows only while callers use all of it.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._limit = 1.0
        self._phase = _Phase.ALONE
        self._trend = LatencyTrend()
        self._is_slow = False
        self._pushed_back_at = math.inf
        self._begun = 0
        self._begun_at_cut = 0

    @property
    def value(self) -> float:
        """The limit now, from 1 to `most`; its whole part counts."""
        return self._limit

    def set_most(self, most: int) -> None:
        """Change the highest value that the limit may have."""
        self._most = most
        self._limit = min(self._limit, float(most))

    def begin(self) -> int:
        """Note that a call begins; returns its number."""
        self._begun += 1
        return self._begun

    def replied(self, in_flight: int, latency: Latency | None) -> None:
        """Note the reply to one of `in_flight` calls."""
        if self._phase is _Phase.ALONE:
            self._phase = _Phase.SLOW_START
            self._limit = min(SECOND_LIMIT, float(self._most))
            return
        if latency is not None:
            self._learn(latency)
        if in_flight >= int(self._limit) and not self._is_slow:
            self._limit = min(self._limit + self._step(), float(self._most))

    def pushed_back(self, call: int) -> None:
        """Note that the provider had no time for a call, which `begin` numbered."""
        if self._phase is not _Phase.ALONE and call > self._begun_at_cut:
            self._pushed_back_at = self._limit
            self._cut(FIRST_CUT if self._phase is _Phase.SLOW_START else CUT)

    def _step(self) -> float:
        if self._phase is _Phase.SLOW_START:
            return 1.0
        is_last_step = self._pushed_back_at - 1 < self._limit < self._pushed_back_at
        return 1.0 / (max(self._limit, LAST_STEP) if is_last_step else self._limit)

    def _learn(self, latency: Latency) -> None:
        has_risen = self._trend.add(latency, self._limit)
        if has_risen is not None:
            self._is_slow = has_risen
            if has_risen:
                self._cut(LATENCY_CUT)

    def _cut(self, part: float) -> None:
        self._phase = _Phase.PROBING
        self._trend.load_changed(int(self._limit))
        self._limit = max(1.0, self._limit * part)
        self._begun_at_cut = self._begun
