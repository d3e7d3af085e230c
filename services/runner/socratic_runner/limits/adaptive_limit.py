"""Finds out by trial how many calls to a model may be in flight."""

from __future__ import annotations

import math
from enum import Enum, auto
from typing import Final

from socratic_runner.limits.latency import Latency, LatencyTrend

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
