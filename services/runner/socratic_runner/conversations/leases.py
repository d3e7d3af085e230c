"""The leases of one runner: it requests them in groups, and waits for an unavailable store."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final, Protocol, TypeVar

import structlog

from socratic_bench.concurrency.cancellation import finish_despite_cancel
from socratic_bench.concurrency.deadlines import wait_at_most, within
from socratic_bench.concurrency.group_commit import GroupCommit
from socratic_bench.concurrency.retry_policy import RetryPolicy
from socratic_bench.consuming.waits import STORE_IS_WAITED_FOR, WaitNews, Waits
from socratic_bench.domain.response import Response
from socratic_bench.errors import (
    StoreError,
    StoreRefused,
    StoreUnavailable,
)
from socratic_bench.ports.stores.leases import (
    DEAD_AFTER_SECONDS,
    CallEnd,
    Lease,
    LeaseAnswer,
    LeaseKey,
    Leases,
    ModelInHand,
)
from socratic_bench.ports.stores.responses import RecordedFailure, Responses
from socratic_runner.troubles import Troubles

log = structlog.get_logger(__name__)

GROUPED_WRITES: Final = 500
"""The most requests that one transaction serves; a request may hold a batch of leases."""

PAUSE: Final = 0.02
"""Seconds between two transactions, unless the first was large: negligible beside a model call;
with 100 calls of 200 ms in flight it saves a quarter of the processor time."""

LARGE: Final = 50
"""How many leases or responses make a transaction large."""

BEAT_SECONDS: Final = 3.0
"""Seconds between two heartbeats."""

CERTAIN_SECONDS: Final = DEAD_AFTER_SECONDS - BEAT_SECONDS
"""Seconds after a heartbeat during which the store certainly counts this owner as alive."""

STOPPED_SECONDS: Final = 3_600.0
"""Seconds for which the runner remembers a claim that was refused as stopped: every unused lease is
younger."""

CANCEL_PATIENCE: Final = 5.0
"""Seconds that a cancelled task waits for the store's answer, to know the leases to give back."""

LEAVE_SECONDS: Final = 3.0
"""Seconds that the store has to note the end of this runner."""

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Recorded:
    """A response to store, and the lease of its call."""

    response: Response
    lease: Lease


class LeaseBookStore(Leases, Responses, Protocol):
    """The roles of the store that a runner writes to."""


class LeaseBook:
    """Takes, ends and settles the leases of one owner, and keeps the owner alive.

    Every request to the store has an id and is idempotent, so the runner repeats it until the store
    answers, or until it stops waiting. Only then does it give up a paid reply.
    """

    def __init__(
        self,
        store: LeaseBookStore,
        owner: str,
        waits: Waits,
        draining: asyncio.Event,
        troubles: Troubles | None = None,
    ) -> None:
        """`owner` is unique for this process. Once `draining` is set, claims of leases no longer
        wait for the store. Heartbeats carry `troubles`.
        """
        self._store = store
        self.owner = owner
        self._waits = waits
        self._draining = draining
        self._troubles = Troubles() if troubles is None else troubles
        self._told_of_troubles = False
        self.answers: Counter[LeaseAnswer] = Counter()
        """How often the store gave each answer to a claim."""

        self._closing = asyncio.Event()
        self._retry_policy = RetryPolicy()
        self._in_hand: Counter[ModelInHand] = Counter()
        self._beating = asyncio.Lock()
        self._beaten_at = float("-inf")
        self._stopped_at: dict[str, float] = {}
        """When the store last refused a claim of a stopped experiment, by experiment."""
        self._take = _grouped(partial(self._patiently, self._take_now, draining))
        self._give_back = _grouped(partial(self._patiently, self._give_back_now, self._closing))
        self._end = _grouped(partial(self._patiently, self._end_now, self._closing))
        # D-057: until the drain deadline; letting a reply go means paying twice.
        self._record = _grouped(partial(self._patiently, self._record_now, self._closing))
        self._fail = _grouped(partial(self._patiently, self._fail_now, self._closing))

    @asynccontextmanager
    async def open(self, *, alone: bool) -> AsyncIterator[None]:
        """Keep the owner alive while the context is open, and free its leases at the end.

        A runner that is `alone` has the store to itself: it frees the leases that others left.
        """
        if alone:
            await self._store.leave_others(self.owner)
        beating = asyncio.create_task(self._keep_beating(), name="heartbeat")
        try:
            async with self._take, self._give_back, self._end, self._record, self._fail:
                try:
                    yield
                finally:
                    self._closing.set()
        finally:
            beating.cancel()
            await asyncio.wait([beating])
            await self._leave()

    @contextmanager
    def in_hand(self, models: Iterable[ModelInHand]) -> Iterator[None]:
        """Note that runs of these models are in hand while the context is open."""
        models = Counter(models)
        self._in_hand += models
        try:
            yield
        finally:
            self._in_hand -= models
            self._troubles.forget(each for each in models if each not in self._in_hand)

    @property
    def certain(self) -> bool:
        """Tell whether this owner certainly still holds its leases.

        It may have lost them if the process was frozen, or the store unavailable, for long.
        """
        return _now() - self._beaten_at < CERTAIN_SECONDS

    def stopped_since(self, taken_at: float, lease: LeaseKey) -> bool:
        """Tell whether the store refused a claim of the same experiment as stopped since then."""
        stopped_at = self._stopped_at.get(lease.experiment_id)
        return stopped_at is not None and stopped_at >= taken_at

    async def take(self, leases: Sequence[Lease]) -> Sequence[LeaseAnswer]:
        """Call `Leases.take_leases`; a cancellation waits for the answer for a while.

        Raises StoreUnavailable once the runner drains.
        """
        if _now() - self._beaten_at > BEAT_SECONDS:
            await self._beat()
        return await finish_despite_cancel(self._take.begin(leases), patience=CANCEL_PATIENCE)

    async def give_back(self, leases: Sequence[LeaseKey]) -> None:
        """End leases whose calls never began."""
        await self._give_back(leases)

    async def end_calls(self, ends: Sequence[CallEnd]) -> None:
        """End leases whose calls ended without a reply."""
        await self._end(ends)

    async def record(self, responses: Sequence[Recorded]) -> Sequence[Response]:
        """Store responses; returns the stored ones of their turns, since the first write wins."""
        return await self._record(responses)

    async def record_failures(self, failures: Sequence[RecordedFailure]) -> None:
        """Store failures, before they are published."""
        await self._fail(failures)

    async def _keep_beating(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            if self._in_hand or self._told_of_troubles:
                with suppress(StoreError, TimeoutError):
                    async with asyncio.timeout(BEAT_SECONDS):
                        await self._beat()

    async def _beat(self) -> None:
        """Send a heartbeat, unless another task just did.

        A lease is worthless once the store may count its owner as dead.
        """
        asked_at = _now()
        async with self._beating:
            if self._beaten_at < asked_at:
                begun = _now()
                models = sorted(self._in_hand)
                troubles = self._troubles.present()
                beat = partial(self._store.heartbeat, self.owner, models, troubles)
                await self._patiently(lambda _: beat(), self._draining, models)
                self._beaten_at = begun
                self._told_of_troubles = bool(troubles)

    async def _leave(self) -> None:
        if self._beaten_at == float("-inf"):
            return  # the store never heard of this owner
        try:
            await within(LEAVE_SECONDS, self._store.leave(self.owner))
        except (StoreError, TimeoutError) as error:
            log.warning("leases stay for a while", reason=str(error) or "no answer in time")

    async def _take_now(self, leases: Sequence[Lease]) -> Sequence[LeaseAnswer]:
        answers = await self._store.take_leases(leases, self.owner)
        self.answers.update(answers)
        if LeaseAnswer.STOPPED in answers:
            self._note_stopped(
                lease.key.experiment_id
                for lease, answer in zip(leases, answers, strict=True)
                if answer is LeaseAnswer.STOPPED
            )
        return answers

    def _note_stopped(self, experiment_ids: Iterable[str]) -> None:
        now = _now()
        recent = {id_: at for id_, at in self._stopped_at.items() if now - at < STOPPED_SECONDS}
        self._stopped_at = recent | dict.fromkeys(experiment_ids, now)

    async def _give_back_now(self, leases: Sequence[LeaseKey]) -> Sequence[None]:
        await self._store.give_back_leases(leases)
        return [None for _ in leases]

    async def _end_now(self, ends: Sequence[CallEnd]) -> Sequence[None]:
        await self._store.end_calls(ends)
        return [None for _ in ends]

    async def _record_now(self, recorded: Sequence[Recorded]) -> Sequence[Response]:
        return await self._store.record(
            [each.response for each in recorded], [_id_to_settle(each.lease) for each in recorded]
        )

    async def _fail_now(self, failures: Sequence[RecordedFailure]) -> Sequence[None]:
        await self._store.record_failures(failures)
        return [None for _ in failures]

    async def _patiently(
        self,
        ask: Callable[[Sequence[Item]], Awaitable[Result]],
        until: asyncio.Event,
        items: Sequence[Item],
    ) -> Result:
        """Repeat a request until the store answers, or once more after `until` is set.

        Raises StoreRefused, and the store's last error.
        """
        attempt = 0
        news = WaitNews()
        with self._waits.waiting() as waits_for:
            while True:
                try:
                    return await ask(items)
                except StoreRefused:
                    raise
                except StoreError as error:
                    attempt += 1
                    passes = isinstance(error, StoreUnavailable)
                    if until.is_set() or (until is self._draining and not passes):
                        raise
                    waits_for(error)
                    level, reason = news.level(error), str(error)
                    log.log(level, STORE_IS_WAITED_FOR, items=len(items), reason=reason)
                await wait_at_most(self._retry_policy.delay(attempt), until)


def _id_to_settle(lease: Lease) -> str | None:
    """The id of a lease; None for one that reserved nothing and needs no settlement."""
    return lease.key.lease_id if lease.reserve else None


def _now() -> float:
    return asyncio.get_running_loop().time()


def _grouped(
    execute: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]],
) -> GroupCommit[Sequence[Item], Sequence[Result]]:
    """One transaction for all who ask at about the same time."""
    return GroupCommit(
        joined(execute), max_batch=GROUPED_WRITES, pause=PAUSE, enough=LARGE, weigh=len
    )


def joined(
    execute: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]],
) -> Callable[[Sequence[Sequence[Item]]], Awaitable[Sequence[Sequence[Result]]]]:
    """Call `execute` once for several requests of several items each."""

    async def execute_all(requests: Sequence[Sequence[Item]]) -> Sequence[Sequence[Result]]:
        results = iter(await execute([item for request in requests for item in request]))
        return [list(islice(results, len(request))) for request in requests]

    return execute_all
