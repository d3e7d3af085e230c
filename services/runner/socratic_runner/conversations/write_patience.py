"""Requests of a runner to the store: repeated until it answers, and grouped into transactions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, TypeVar

import structlog

from socratic_bench.concurrency.adaptive_pause import AdaptivePause
from socratic_bench.concurrency.deadlines import wait_at_most
from socratic_bench.concurrency.group_commit import GroupCommit
from socratic_bench.concurrency.retry_policy import RetryPolicy
from socratic_bench.consuming.waits import WAITING_FOR_STORE, WaitNews, Waits
from socratic_bench.errors import StoreError, StoreRefused

log = structlog.get_logger(__name__)

GROUPED_WRITES: Final = 500
"""The most requests that one transaction serves; a request may hold a batch of leases."""

LONGEST_PAUSE: Final = 0.02
"""The most seconds between two transactions, unless the first was large: negligible beside a model
call; with 100 calls of 200 ms in flight it saves a quarter of the processor time."""

LARGE: Final = 50
"""How many leases or responses make a transaction large."""

Item = TypeVar("Item")
Result = TypeVar("Result")

Execute = Callable[[Sequence[Item]], Awaitable[Result]]
"""Sends a request of several items to the store. It is idempotent."""


@dataclass(frozen=True, slots=True)
class WritePatience:
    """Repeats requests to the store until it answers, or until nobody waits any more."""

    waits: Waits
    """Knows why a request waits for the store."""

    until: asyncio.Event
    """Once set, each request is repeated once more and no longer."""

    outlasts: type[StoreError] = StoreError
    """The errors that are waited out, but for StoreRefused."""

    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)

    async def ask(self, execute: Execute[Item, Result], items: Sequence[Item]) -> Result:
        """Return the store's answer. Raises StoreRefused, and the store's last error."""
        attempt = 0
        news = WaitNews()
        with self.waits.waiting() as waits_for:
            while True:
                try:
                    return await execute(items)
                except StoreRefused:
                    raise
                except self.outlasts as error:
                    attempt += 1
                    if self.until.is_set():
                        raise
                    waits_for(error)
                    level, reason = news.level(error), str(error)
                    log.log(level, WAITING_FOR_STORE, items=len(items), reason=reason)
                await wait_at_most(self.retry_policy.delay(attempt), self.until)

    def grouped(
        self, execute: Execute[Item, Sequence[Result]]
    ) -> GroupCommit[Sequence[Item], Sequence[Result]]:
        """Make one transaction for all who ask at about the same time."""

        async def execute_patiently(items: Sequence[Item]) -> Sequence[Result]:
            return await self.ask(execute, items)

        return GroupCommit(
            joined(execute_patiently),
            max_batch=GROUPED_WRITES,
            next_pause=AdaptivePause(LONGEST_PAUSE).next,
            enough=LARGE,
            weigh=len,
        )


def joined(
    execute: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]],
) -> Callable[[Sequence[Sequence[Item]]], Awaitable[Sequence[Sequence[Result]]]]:
    """Call `execute` once for several requests of several items each."""

    async def execute_all(requests: Sequence[Sequence[Item]]) -> Sequence[Sequence[Result]]:
        results = iter(await execute([item for request in requests for item in request]))
        return [list(islice(results, len(request))) for request in requests]

    return execute_all
