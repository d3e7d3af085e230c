"""The leases of one runner: asked of the store in groups, for as long as the store needs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final, TypeVar

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
    Claim,
    LeaseAnswer,
    LeaseKey,
    ModelInHand,
)
from socratic_bench.ports.stores.responses import RecordedFailure
from socratic_bench.ports.stores.store import Store
from socratic_runner.troubles import Troubles

log = structlog.get_logger(__name__)

GROUPED_WRITES: Final = 500
"""How many requests, of one lease or response or of a batch of them, a transaction serves."""

PAUSE: Final = 0.02
"""Seconds from one transaction to the next, unless it was large: nothing beside a call to a model;
with 100 calls of 200 ms under way it saves a quarter of the processor time."""

LARGE: Final = 50
"""How many leases or responses make a transaction large."""

BEAT_SECONDS: Final = 3.0
"""Seconds between two heartbeats."""

CERTAIN_SECONDS: Final = DEAD_AFTER_SECONDS - BEAT_SECONDS
"""For so long after a heartbeat it is certain that the store takes this owner for alive."""

STOPPED_SECONDS: Final = 3_600.0
"""For how long it is remembered that a claim was refused as stopped: no lease waits for so long to
be used."""

CANCEL_PATIENCE: Final = 5.0
"""Seconds that a cancelled task waits for the store, to know which leases to give back."""

LEAVE_SECONDS: Final = 3.0
"""How long the store may take to note that this runner is gone."""

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Recorded:
    """A response to be stored, and the lease under which its call was made."""

    response: Response
    lease_id: str | None
    """None for a lease that reserved nothing: it needs no settling."""


class LeaseBook:
    """Takes, ends and settles the leases of one owner, and keeps the owner alive.

    Whatever it asks of the store has an id and may be asked again, so it is: until the store
    answers, or nothing is to wait any more. A reply that was paid for is let go only then.
    """

    def __init__(
        self,
        store: Store,
        owner: str,
        waits: Waits,
        draining: asyncio.Event,
        troubles: Troubles | None = None,
    ) -> None:
        """`owner` is unique for this process. No lease is waited for once `draining` is set. The
        heartbeats carry `troubles`.
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
        """When a claim was last refused since its experiment is stopped, by experiment."""
        self._take = _grouped(partial(self._patiently, self._take_now, draining))
        self._give_back = _grouped(partial(self._patiently, self._give_back_now, self._closing))
        self._end = _grouped(partial(self._patiently, self._end_now, self._closing))
        # D-057: until the drain deadline; letting a reply go means paying twice.
        self._record = _grouped(partial(self._patiently, self._record_now, self._closing))
        self._fail = _grouped(partial(self._patiently, self._fail_now, self._closing))

    @asynccontextmanager
    async def open(self, *, alone: bool) -> AsyncIterator[None]:
        """Keep the owner alive while the context is open, and free its leases at the end.

        A runner that is `alone` has the store to itself: leases that others left are free.
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
        """Have runs of these models in hand while the context is open."""
        models = Counter(models)
        self._in_hand += models
        try:
            yield
        finally:
            self._in_hand -= models
            self._troubles.let_go(each for each in models if each not in self._in_hand)

    @property
    def certain(self) -> bool:
        """Whether leases that were taken are certainly still this owner's.

        They may not be after this process was frozen, or the store unavailable, for long.
        """
        return _now() - self._beaten_at < CERTAIN_SECONDS

    def stopped_since(self, taken_at: float, lease: LeaseKey) -> bool:
        """Whether a claim of its experiment was refused as stopped since this lease was taken."""
        stopped_at = self._stopped_at.get(lease.experiment_id)
        return stopped_at is not None and stopped_at >= taken_at

    async def take(self, claims: Sequence[Claim]) -> Sequence[LeaseAnswer]:
        """What `Leases.take_leases` says; a cancellation awaits its end for a while.

        Raises StoreUnavailable once the runner drains.
        """
        if _now() - self._beaten_at > BEAT_SECONDS:
            await self._beat()
        return await finish_despite_cancel(self._take.begin(claims), patience=CANCEL_PATIENCE)

    async def give_back(self, leases: Sequence[LeaseKey]) -> None:
        """End leases under which no call was begun."""
        await self._give_back(leases)

    async def end_calls(self, ends: Sequence[CallEnd]) -> None:
        """End leases whose calls ended without a reply."""
        await self._end(ends)

    async def record(self, responses: Sequence[Recorded]) -> Sequence[Response]:
        """Store responses; returns what is stored for their turns, since the first write wins."""
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
        """Say that this runner is alive, unless another task just did.

        A lease is worth nothing if the store may take its owner for dead.
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

    async def _take_now(self, claims: Sequence[Claim]) -> Sequence[LeaseAnswer]:
        answers = await self._store.take_leases(claims, self.owner)
        self.answers.update(answers)
        if LeaseAnswer.STOPPED in answers:
            self._note_stopped(
                claim.lease.experiment_id
                for claim, answer in zip(claims, answers, strict=True)
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
            [each.response for each in recorded], [each.lease_id for each in recorded]
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
        """Ask the store again and again until it answers, or once more after `until` is set.

        Raises StoreRefused, and what the store raised last.
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
    """`execute` for several requests at once, of several items each."""

    async def execute_all(requests: Sequence[Sequence[Item]]) -> Sequence[Sequence[Result]]:
        results = iter(await execute([item for request in requests for item in request]))
        return [list(islice(results, len(request))) for request in requests]

    return execute_all
