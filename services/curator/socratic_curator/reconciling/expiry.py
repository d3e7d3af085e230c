"""The removal of old experiments, and of the rest of interrupted deletions."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final

import structlog

from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.stores.experiments import Experiments

log = structlog.get_logger(__name__)

LOOK_SECONDS: Final = 600.0
"""Seconds between two looks for expired experiments."""

MOST_BATCHES: Final = 20
"""The most batches of rows that one pass removes: other work waits for the same process."""


class Expiry:
    """Deletes experiments. One process at a time does so."""

    def __init__(
        self,
        store: Experiments,
        clock: Clock,
        after: timedelta | None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`after` is the time from completion to deletion; None: keep experiments for ever."""
        self._store = store
        self._clock = clock
        self._after = after
        self._monotonic = monotonic
        self._due_at = float("-inf")

    @property
    def is_due(self) -> bool:
        """Whether it is time to look for expired experiments."""
        return self._monotonic() >= self._due_at

    async def expire(self) -> None:
        """Remove some experiments, if a look is due. Raises StoreError."""
        if not self.is_due:
            return
        now = self._monotonic()
        before = None if self._after is None else self._clock.now() - self._after
        steps = MOST_BATCHES
        for experiment_id in await self._store.deletable(before):
            await self._store.change_state(experiment_id, ExperimentState.DELETED)
            while steps and await self._store.delete_rows(experiment_id):
                steps -= 1
            if not steps:
                return
            log.info("deleted", correlation_id=experiment_id)
        self._due_at = now + LOOK_SECONDS
