"""The circuit breaker: a model that cannot be used is not called again and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import structlog

from socratic_bench.errors import ModelCallFailed
from socratic_runner.conversations.failure_classes import BUSY, PASSING

log = structlog.get_logger(__name__)

COOL_DOWN: Final = 60.0
"""Seconds until one call tries whether the model can be used again."""

SILENCE: Final = 600.0
"""Seconds in which no call was answered, after which the model is taken to be away. At an endpoint
that hangs calls are made one by one: without an end to it, a thousand runs would hang for days."""

BUSY_SILENCE: Final = 180.0
"""The same where the provider was busy or could not be reached each time: then calls are made one
by one too, but it is known to be there, or not."""

LONGEST_GAP: Final = 60.0
"""Seconds between two calls that count as silence, at most. A pause is no longer; a longer rest is
one in which no run asked."""

SILENT_CALLS: Final = 4
"""Calls at least that were not answered in that time: a few slow ones say nothing yet."""


class Breaker:
    """Stops the calls to one model of an experiment after a failure that all of them would share,
    or when none has been answered for a long time.

    After the cool-down one call, the probe, is let through; the others are refused until it has
    told. (Nygard, "Release It!", 2007: Circuit Breaker.) Whoever was admitted reports `replied`,
    `failed` or `trip`, or `abandoned` where there was no outcome.
    """

    def __init__(
        self,
        model_id: str,
        clock: Callable[[], float] = time.monotonic,
        *,
        busy_silence: float = BUSY_SILENCE,
    ) -> None:
        """`clock` gives seconds that never go back."""
        self._model_id = model_id
        self._busy_silence = busy_silence
        self._clock = clock
        self._failure: ModelCallFailed | None = None
        self._open_until = 0.0
        self._probing = False
        self._unanswered = 0
        self._unanswered_since = 0.0
        self._in_flight = 0
        self._called_at = 0.0
        """When the last call began or ended."""

    def trip(self, failure: ModelCallFailed, cool_down: float = COOL_DOWN) -> None:
        """Refuse calls for `cool_down` seconds from now on, for the reason of `failure`."""
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
    def refusal(self) -> ModelCallFailed | None:
        """What a call that came now would fail with, without being made; None: it may come."""
        failure = self._failure
        if failure is None or (not self._probing and self._clock() >= self._open_until):
            return None
        return ModelCallFailed(
            failure.kind, f"not called: stopped after {failure}", retryable=False
        )

    def admit(self) -> ModelCallFailed | None:
        """None: the call is to be made now. Otherwise what it fails with, without being made."""
        refusal = self.refusal
        if refusal is None and self._failure is not None:
            self._probing = True
        return refusal

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """Make an admitted call; one that ends by an exception, such as a cancellation, had no
        outcome.
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

    def replied(self) -> None:
        """A call was answered: the model can be used, unless the call began before the failure."""
        if self._failure is not None and not self._probing:
            return
        if self._failure is not None:
            log.info("model goes on", model=self._model_id)
        self._failure = None
        self._probing = False
        self._unanswered = 0

    def failed(self, failure: ModelCallFailed) -> None:
        """A call failed in a way that others need not share."""
        self._probing = False
        if failure.kind not in PASSING:
            self._unanswered = 0  # it does answer, if only that it will not
            return
        if not self._unanswered:
            self._unanswered_since = self._clock()
        self._unanswered += 1
        silence = self._clock() - self._unanswered_since
        longest = self._busy_silence if failure.kind in BUSY else SILENCE
        if self._unanswered >= SILENT_CALLS and silence >= longest:
            self.trip(failure)

    def abandoned(self) -> None:
        """A call ended without an outcome: the next one may be the probe."""
        self._probing = False
