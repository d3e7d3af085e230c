"""The circuit breaker: it stops calls to a model that cannot be used."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import Final

import structlog

from socratic_bench.errors import FaultScope, ModelCallFailed
from socratic_runner.conversations.call_outcomes import BUSY, PASSING

log = structlog.get_logger(__name__)

COOL_DOWN: Final = 60.0
"""Seconds until one call tries again whether the model can be used."""

SILENCE: Final = 600.0
"""Seconds without a reply after which the breaker opens. At an endpoint that hangs, calls go one by
one: a thousand runs would otherwise hang for days."""

BUSY_SILENCE: Final = 180.0
"""The same where the provider was busy or unreachable each time. Calls go one by one then, too, but
each failure is a clear answer."""

LONGEST_GAP: Final = 60.0
"""Seconds between two calls that count as silence, at most. A pause is not longer; in a longer rest
no run had a call to make."""

SILENT_CALLS: Final = 4
"""Calls without a reply in that time, at least: a few slow calls prove nothing."""

REFUSED_SCENARIOS: Final = 3
"""Scenarios refused in a row that open the breaker: a filter refuses some texts, a model that
cannot take the request refuses all."""

PROBE_SECONDS: Final = 2.0
"""Seconds until a run looks again while a probe is on its way."""


class Breaker:
    """Stops the calls to one model of an experiment after a failure that all calls would share, or
    after a long time without a reply.

    After the cool-down the breaker admits one call, the probe, and refuses the others until the
    probe has an outcome. (Nygard, "Release It!", 2007: Circuit Breaker.) The caller of an admitted
    call reports `replied`, `failed` or `trip`, or `abandoned` without an outcome.
    """

    def __init__(
        self,
        model_id: str,
        clock: Callable[[], float] = time.monotonic,
        *,
        busy_silence: float = BUSY_SILENCE,
        scenarios: int = REFUSED_SCENARIOS,
    ) -> None:
        """`clock` gives monotonic seconds. `scenarios` is the number of those in the experiment."""
        self._model_id = model_id
        self._busy_silence = busy_silence
        self._most_refused = min(scenarios, REFUSED_SCENARIOS)
        self._refused: dict[str, int] = {}
        """The turn that was refused in each scenario, since a reply to that turn or a later one."""

        self._has_replied = False
        self._held_until = -inf
        self._clock = clock
        self._failure: ModelCallFailed | None = None
        self._open_until = 0.0
        self._probing = False
        self._unanswered = 0
        self._unanswered_since = 0.0
        self._in_flight = 0
        self._called_at = 0.0
        """The time at which the last call began or ended."""

    def trip(
        self, failure: ModelCallFailed, cool_down: float = COOL_DOWN, *, patience: float = 0.0
    ) -> None:
        """Open the breaker: refuse calls for `cool_down` seconds because of `failure`.

        A key that was accepted before may be renewed: runs wait for it for `patience` seconds.
        """
        if self._failure is None and self._has_replied and failure.scope is FaultScope.KEY:
            self._held_until = self._clock() + patience
        if self._failure is None:
            log.warning(
                "model stopped",
                model=self._model_id,
                kind=str(failure.kind),
                reason=str(failure),
                next_try_in_seconds=cool_down,
            )
        self._failure = failure
        self._open_until = self._clock() + cool_down
        self._probing = False

    @property
    def is_open(self) -> bool:
        """Whether the model is stopped: until a probe, or an earlier call, gets a reply."""
        return self._failure is not None

    @property
    def held_for(self) -> float | None:
        """Seconds until a run looks again for a renewed key; None if no run has to wait for one."""
        now = self._clock()
        if self._failure is None or now >= self._held_until:
            return None
        return max(self._open_until - now, PROBE_SECONDS)

    @property
    def refusal(self) -> ModelCallFailed | None:
        """The failure of a call that would begin now; None if it may begin."""
        failure = self._failure
        if failure is None or (not self._probing and self._clock() >= self._open_until):
            return None
        return ModelCallFailed(
            failure.kind,
            f"not called: stopped after {failure}",
            retryable=False,
            scope=failure.scope,
        )

    def admit(self) -> ModelCallFailed | None:
        """Admit a call: returns None, or the failure of a call that may not begin."""
        refusal = self.refusal
        if refusal is None and self._failure is not None:
            self._probing = True
        return refusal

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """Make an admitted call in this context. An exception, such as a cancellation, leaves the
        call without an outcome.
        """
        if not self._in_flight:
            self._unanswered_since += max(0.0, self._clock() - self._called_at - LONGEST_GAP)
        self._in_flight += 1
        try:
            yield
        except BaseException:
            self.abandoned()
            raise
        finally:
            self._in_flight -= 1
            self._called_at = self._clock()

    def replied(self, turn: int = 1) -> None:
        """Close the breaker after a reply to a turn, unless the call began before the failure."""
        self._has_replied = True
        if self._refused:
            self._refused = {each: at for each, at in self._refused.items() if at > turn}
        if self._failure is not None and not self._probing:
            return
        if self._failure is not None:
            log.info("model goes on", model=self._model_id)
        self._failure = None
        self._probing = False
        self._unanswered = 0

    def failed(self, failure: ModelCallFailed) -> None:
        """Note a failure that other calls need not share; many in a row open the breaker."""
        self._probing = False
        if failure.kind not in PASSING:
            self._unanswered = 0  # a refusal is an answer, too
            return
        if not self._unanswered:
            self._unanswered_since = self._clock()
        self._unanswered += 1
        silence = self._clock() - self._unanswered_since
        longest = self._busy_silence if failure.kind in BUSY else SILENCE
        if self._unanswered >= SILENT_CALLS and silence >= longest:
            self.trip(failure)

    def refused(self, failure: ModelCallFailed, scenario_id: str, turn: int) -> None:
        """Note a refusal that may be the fault of one conversation; those of several scenarios in a
        row are the model's.
        """
        self._refused[scenario_id] = turn
        if self._failure is not None or len(self._refused) >= self._most_refused:
            self.trip(failure)
        else:
            self.failed(failure)

    def abandoned(self) -> None:
        """Note a call without an outcome: the next call may be the probe."""
        self._probing = False
