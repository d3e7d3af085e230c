"""The base of every role of the store in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from socratic_bench.adapters.stores.memory.state import StoreState
from socratic_bench.errors import StoreError


def _machine_time() -> datetime:
    return datetime.now(UTC)


class MemoryRole:
    """A state, perhaps shared with other stores, and a clock."""

    def __init__(
        self, state: StoreState | None = None, now: Callable[[], datetime] | None = None
    ) -> None:
        """Without `state` the store begins empty; without `now` it reads the machine's clock."""
        self._state = StoreState() if state is None else state
        self._now = now or _machine_time
        self._in_use = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._closed = False

    @asynccontextmanager
    async def _state_alone(self) -> AsyncIterator[StoreState]:
        """Yield the state for one step, which reads and changes it without awaiting.

        Other tasks run once before the step; a cancellation can only arrive then.
        """
        if self._closed:
            raise StoreError("memory: the store was closed; open it again")
        self._in_use += 1
        self._idle.clear()
        try:
            await asyncio.sleep(0)
            yield self._state
        finally:
            self._in_use -= 1
            if not self._in_use:
                self._idle.set()

    def _no_experiment(self, experiment_id: str) -> StoreError:
        return StoreError(f"memory: there is no experiment {experiment_id}")
