"""Tasks that outlive the request that began them, and end with the application."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Final

import structlog

from socratic_bench.errors import SocraticBenchError

CLOSE_SECONDS: Final = 5.0
"""Seconds that tasks may take to end."""

log = structlog.get_logger(__name__)


class Background:
    """Owns such tasks, and logs the errors that no request reports."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
        """Carry out `work` in a task."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def close(self) -> None:
        """Cancel the tasks, and wait for their end."""
        await self._end({*self._tasks})

    async def end(self, task: asyncio.Task[None]) -> None:
        """Cancel a task, and wait for its end."""
        await self._end({task})

    async def _end(self, tasks: set[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_SECONDS)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        if isinstance(error, SocraticBenchError | TimeoutError):
            log.warning("not finished", work=task.get_name(), reason=str(error))
        else:
            log.error("failed", work=task.get_name(), exc_info=error)
