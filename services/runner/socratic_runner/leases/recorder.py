"""What a runner stores of its calls, in groups, repeated until the store has it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, TypeVar

import structlog

from socratic_bench.concurrency.deadlines import wait_at_most
from socratic_bench.concurrency.group_commit import GroupCommit
from socratic_bench.concurrency.retry_policy import AdaptivePause, RetryPolicy
from socratic_bench.consuming.waits import WAITING_FOR_STORE, WaitNews, Waits
from socratic_bench.domain.response import Response
from socratic_bench.errors import StoreError, StoreRefused
from socratic_bench.ports.stores.leases import Lease
from socratic_bench.ports.stores.responses import NO_LEASE, RecordedFailure, Responses

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


@dataclass(frozen=True, slots=True)
class Recorded:
    """A response to store, and the lease of its call; None for an adopted one."""

    response: Response
    lease: Lease | None
    in_batch: bool = False
    """Whether the lease is a batch's, which lasts until it is settled."""

    @property
    def lease_to_settle(self) -> str | None:
        """The id of the lease; None for one that reserved nothing and needs no settlement."""
        if self.lease is None:
            return NO_LEASE
        return self.lease.key.lease_id if self.lease.reserve or self.in_batch else None


class Recorder:
    """Stores replies and failures before anything else happens to them.

    It waits for the store until the drain deadline. Only then does it give up a paid reply.
    """

    def __init__(self, store: Responses, waits: Waits) -> None:
        self._store = store
        self._closing = asyncio.Event()
        # D-057: until the drain deadline; letting a reply go means paying twice.
        patience = WritePatience(waits, self._closing)
        self._record = patience.grouped(self._record_now)
        self._kept: dict[tuple[str, int], asyncio.Future[Sequence[Response]]] = {}
        """The storing under way, by run and turn."""

        self._fail = patience.grouped(self._fail_now)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Store while the context is open, and what is left at its end once more."""
        async with self._record, self._fail:
            try:
                yield
            finally:
                self._closing.set()

    async def record(self, responses: Sequence[Recorded]) -> Sequence[Response]:
        """Store responses; returns the stored ones of their turns, since the first write wins.

        A cancellation ends the wait, and not the storing.
        """
        return await asyncio.shield(self.begin(responses))

    def begin(self, responses: Sequence[Recorded]) -> asyncio.Future[Sequence[Response]]:
        """Return the future of what `record` returns; it may fail after its caller has gone."""
        storing = self._record.begin(responses)
        storing.add_done_callback(_take_note)
        turns = [(each.response.run.run_id, each.response.turn) for each in responses]
        self._kept.update(dict.fromkeys(turns, storing))
        storing.add_done_callback(lambda _: self._forget(turns, storing))
        return storing

    def keeps(self, run_id: str, turn: int) -> bool:
        """Tell whether a reply to a turn is on its way to the store."""
        return (run_id, turn) in self._kept

    async def kept(self, run_id: str, turn: int) -> Response | None:
        """Return the stored response of a turn whose reply is on its way to the store.

        None for any other turn. A cancelled caller left the reply here, paid for; the store would
        grant this owner another call. Raises the errors of `record`.
        """
        storing = self._kept.get((run_id, turn))
        if storing is None:
            return None
        stored = {(each.run.run_id, each.turn): each for each in await asyncio.shield(storing)}
        return stored.get((run_id, turn))

    async def record_failures(self, failures: Sequence[RecordedFailure]) -> None:
        """Store failures, before they are published."""
        await self._fail(failures)

    def _forget(
        self, turns: Sequence[tuple[str, int]], storing: asyncio.Future[Sequence[Response]]
    ) -> None:
        for turn in turns:
            if self._kept.get(turn) is storing:
                del self._kept[turn]

    async def _record_now(self, recorded: Sequence[Recorded]) -> Sequence[Response]:
        return await self._store.record(
            [each.response for each in recorded], [each.lease_to_settle for each in recorded]
        )

    async def _fail_now(self, failures: Sequence[RecordedFailure]) -> Sequence[None]:
        await self._store.record_failures(failures)
        return [None for _ in failures]


def _take_note(storing: asyncio.Future[Sequence[Response]]) -> None:
    """Mark an error as seen: a caller that was cancelled no longer waits for it."""
    if not storing.cancelled():
        storing.exception()
