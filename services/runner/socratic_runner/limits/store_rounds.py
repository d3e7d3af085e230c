"""Rounds of questions to the store about other runners: at every beat, and when a call waits."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable
from types import TracebackType
from typing import Final, Self, TypeVar

import structlog

from socratic_bench.concurrency.deadlines import wait_at_most, within

log = structlog.get_logger(__name__)

PATIENCE: Final = 3.0
"""Seconds that the store may take for an answer."""

Answer = TypeVar("Answer")


class StoreRounds(ABC):
    """Asks the store in rounds while the context is open; faults of the store do not end them."""

    def __init__(self, name: str, *, min_interval: float, away: str, back: str) -> None:
        """`min_interval` is the shortest time between two questions, in seconds. The log says
        `away` once when the store does not answer, and `back` when it answers again.
        """
        self._name = name
        self._min_interval = min_interval
        self._away = away
        self._back = back
        self._is_unavailable = False
        self._wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Begin the next round now."""
        self._wanted.set()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._go_round(), name=self._name)
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    @abstractmethod
    async def _ask(self, begun: float) -> bool:
        """Ask the questions of a round that began at `begun`; returns whether there were any."""

    @abstractmethod
    def _next_at(self, begun: float) -> float:
        """Return the latest start of the next round, by the loop's clock."""

    async def _go_round(self) -> None:
        while True:
            begun = asyncio.get_running_loop().time()
            self._wanted.clear()
            if await self._ask(begun):
                await asyncio.sleep(self._min_interval)
            pause = self._next_at(begun) - asyncio.get_running_loop().time()
            await wait_at_most(pause, self._wanted)

    async def _answer(self, question: Awaitable[Answer]) -> Answer | None:
        """Return the store's answer; None if the store does not answer in time."""
        try:
            answer = await within(PATIENCE, question)
        except Exception as error:  # noqa: BLE001 - whatever it is, the next round may succeed
            told = log.debug if self._is_unavailable else log.warning
            told(self._away, reason=str(error) or f"no answer within {PATIENCE:g} s")
            self._is_unavailable = True
            return None
        if self._is_unavailable:
            log.info(self._back)
        self._is_unavailable = False
        return answer
