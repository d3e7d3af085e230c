"""Waiting for a store that is unavailable or silent, while runs are requested."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from socratic_bench.concurrency.retry_policy import RetryPolicy
from socratic_bench.consuming.waits import Waits
from socratic_bench.errors import StoreUnavailable

STORE_DEADLINE: Final = 60.0
"""Seconds that one question to the store may take before it is asked again."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StorePatience:
    """Asks the store until it answers. What is asked may be asked any number of times."""

    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)
    waits: Waits = field(default_factory=Waits)
    """Knows why a request waits for the store."""

    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Waits for so many seconds between two tries."""

    async def ask(self, question: Callable[[], Awaitable[T]]) -> T:
        """The store's answer. Raises StoreUnavailable once the retry policy is exhausted."""
        attempt = 1
        with self.waits.waiting() as waits_for:
            while True:
                try:
                    async with asyncio.timeout(STORE_DEADLINE):
                        return await question()
                except TimeoutError:
                    silent = f"the store was silent for {STORE_DEADLINE:g} seconds"
                    problem = StoreUnavailable(silent)
                except StoreUnavailable as error:
                    problem = error
                if self.retry_policy.exhausted(attempt):
                    raise problem
                waits_for(problem)
                await self.pause(self.retry_policy.delay(attempt))
                attempt += 1
