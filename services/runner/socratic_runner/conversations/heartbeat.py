"""The heartbeat of a runner: without one the store frees its leases."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final

import structlog

from socratic_bench.concurrency.deadlines import within
from socratic_bench.errors import StoreError
from socratic_bench.ports.stores.leases import DEAD_AFTER_SECONDS, Leases, ModelInHand
from socratic_runner.conversations.write_patience import WritePatience
from socratic_runner.troubles import Troubles

log = structlog.get_logger(__name__)

BEAT_SECONDS: Final = 3.0
"""Seconds between two heartbeats."""

CERTAIN_SECONDS: Final = DEAD_AFTER_SECONDS - BEAT_SECONDS
"""Seconds after a heartbeat during which the store certainly counts this owner as alive."""

LEAVE_SECONDS: Final = 3.0
"""Seconds that the store has to note the end of this runner."""


class Heartbeat:
    """Tells the store that an owner of leases is alive, and which models it has in hand."""

    def __init__(
        self, leases: Leases, owner: str, patience: WritePatience, troubles: Troubles
    ) -> None:
        """`owner` is unique for this process. Each heartbeat carries `troubles`."""
        self._leases = leases
        self._owner = owner
        self._patience = patience
        self._troubles = troubles
        self._told_of_troubles = False
        self._in_hand: Counter[ModelInHand] = Counter()
        self._beating = asyncio.Lock()
        self._beaten_at = float("-inf")

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

                async def beat(models: Sequence[ModelInHand]) -> None:
                    await self._leases.heartbeat(self._owner, models, troubles)

                await self._patience.ask(beat, sorted(self._in_hand))
                self._beaten_at = begun
                self._told_of_troubles = bool(troubles)

    async def _keep_beating(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            if self._in_hand or self._told_of_troubles:
                with suppress(StoreError, TimeoutError):
                    async with asyncio.timeout(BEAT_SECONDS):
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
