"""The heartbeat of a runner: without one the store frees its leases."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final

import structlog

from socratic_bench.concurrency.deadlines import within
from socratic_bench.domain.leasing import DEAD_AFTER_SECONDS
from socratic_bench.errors import StoreError, StoreUnavailable
from socratic_bench.ports.stores.leases import Lease, LeaseKey, Leases, ModelInHand
from socratic_runner.leases.recorder import WritePatience
from socratic_runner.troubles import Troubles

log = structlog.get_logger(__name__)

BEAT_SECONDS: Final = 3.0
"""Seconds between two heartbeats."""

CERTAIN_SECONDS: Final = DEAD_AFTER_SECONDS - BEAT_SECONDS
"""Seconds after a heartbeat during which the store certainly counts this owner as alive."""

ANSWER_SECONDS: Final = 2 * BEAT_SECONDS
"""Seconds that the store has to answer one heartbeat: afterwards the next one is worth more."""

STEADY_SECONDS: Final = 2 * BEAT_SECONDS
"""The most seconds from one heartbeat to the answer to the next, while the store is there."""

OVERDUE_SECONDS: Final = DEAD_AFTER_SECONDS + BEAT_SECONDS + ANSWER_SECONDS
"""Seconds before the end of a lease from which its owner is overdue: for so long the store may go
by an earlier heartbeat."""

LEAVE_SECONDS: Final = 3.0
"""Seconds that the store has to note the end of this runner."""


class HeldLeases:
    """The leases that this process holds, from their grants until their ends are stored.

    D-410: however long the store takes no outcome of a call, it must not free the lease of one
    while this owner lives.
    """

    def __init__(self) -> None:
        self._until: dict[LeaseKey, float] = {}
        """When each lease ends at the earliest, by the loop's clock."""

    def __bool__(self) -> bool:
        return bool(self._until)

    def add(self, lease: Lease, claimed_at: float) -> None:
        """Note a lease that was granted to a claim of this time of the loop."""
        self._until[lease.key] = claimed_at + lease.seconds

    def discard(self, lease: LeaseKey) -> None:
        """Forget a lease that ended, or whose call has no outcome to store any more."""
        self._until.pop(lease, None)

    @contextmanager
    def calling(self, lease: LeaseKey) -> Iterator[None]:
        """Forget the lease if the context, its call, raises."""
        try:
            yield
        except BaseException:
            self.discard(lease)
            raise

    @property
    def overdue(self) -> bool:
        """Whether the store may get an outcome after the end of its lease."""
        soon = _now() + OVERDUE_SECONDS
        return any(until < soon for until in self._until.values())


class Heartbeat:
    """Tells the store that an owner of leases is alive, and which models it has in hand."""

    def __init__(
        self,
        leases: Leases,
        owner: str,
        patience: WritePatience,
        troubles: Troubles,
        held: HeldLeases,
    ) -> None:
        """`owner` is unique for this process. Each heartbeat carries `troubles`, and whether a
        lease in `held` is overdue.
        """
        self._leases = leases
        self._owner = owner
        self._patience = patience
        self._troubles = troubles
        self._held = held
        self._told_of_troubles = False
        self._in_hand: Counter[ModelInHand] = Counter()
        self._beating = asyncio.Lock()
        self._beaten_at = float("-inf")
        self._steady_since = float("inf")

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Keep the owner alive while the context is open, and free its leases at the end."""
        beating = asyncio.create_task(self._keep_beating(), name="heartbeat")
        try:
            yield
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

    @property
    def may_judge(self) -> bool:
        """Tell whether the silence of another owner proves that it is dead.

        The store has taken this owner's heartbeats for as long as the other may be silent. Without
        that, the store may have been away for both, or this process frozen.
        """
        now = _now()
        is_steady = now - self._beaten_at <= STEADY_SECONDS
        return is_steady and now - self._steady_since >= DEAD_AFTER_SECONDS

    async def beat_if_due(self) -> None:
        """Send a heartbeat, unless the last one is recent or another task just sent one.

        A lease is worthless once the store may count its owner as dead.
        """
        if _now() - self._beaten_at > BEAT_SECONDS:
            await self._beat()

    async def _beat(self) -> None:
        asked_at = _now()
        async with self._beating:
            if self._beaten_at < asked_at:
                begun = _now()
                troubles = self._troubles.present()

                async def beat(_models: Sequence[ModelInHand]) -> None:
                    nonlocal begun
                    begun = _now()
                    sending = self._leases.heartbeat(
                        self._owner, sorted(self._in_hand), troubles, overdue=self._held.overdue
                    )
                    try:
                        await within(ANSWER_SECONDS, sending)
                    except TimeoutError as error:
                        message = f"no answer to a heartbeat within {ANSWER_SECONDS:g} s"
                        raise StoreUnavailable(message) from error

                await self._patience.ask(beat, sorted(self._in_hand))
                if _now() - self._beaten_at > STEADY_SECONDS:
                    self._steady_since = _now()
                self._beaten_at = begun
                self._told_of_troubles = bool(troubles)

    async def _keep_beating(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            if self._in_hand or self._held or self._told_of_troubles:
                with suppress(StoreError):
                    await self._beat()

    async def _leave(self) -> None:
        if self._beaten_at == float("-inf"):
            return  # the store never heard of this owner
        try:
            await within(LEAVE_SECONDS, self._leases.leave(self._owner))
        except (StoreError, TimeoutError) as error:
            log.warning("leases stay for a while", reason=str(error) or "no answer in time")


def _now() -> float:
    return asyncio.get_running_loop().time()
