"""An event loop whose time passes only while all tasks wait: hours take milliseconds.

Time stands still while a thread works, for example for a database.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, TypeVar

Result = TypeVar("Result")


class _PassingTime(selectors.SelectSelector):
    """Instead of waiting for something to happen, lets the time pass until something is due."""

    now = 0.0
    threads = 0
    """How many are at work."""

    def select(self, timeout: float | None = None) -> list[Any]:
        if self.threads and timeout != 0:
            return super().select(None)
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "everybody waits for ever"
            self.now += max(0.0, timeout)
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._passing = _PassingTime()
        super().__init__(self._passing)

    def time(self) -> float:
        return self._passing.now

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        future = super().run_in_executor(executor, func, *args)
        self._passing.threads += 1
        future.add_done_callback(self._thread_done)
        return future

    async def shutdown_default_executor(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - asyncio's own
    ) -> None:
        self._passing.threads += 1  # a thread waits for the others
        await super().shutdown_default_executor()
        self._passing.threads -= 1

    def _thread_done(self, _: asyncio.Future[Any]) -> None:
        self._passing.threads -= 1


def in_virtual_time(work: Coroutine[Any, Any, Result]) -> Result:
    """The result of `work`. Fails if it leaves a task, or if all tasks wait for each other."""

    async def and_nothing_else() -> Result:
        result = await work
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks are left: {left}"
        return result

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(and_nothing_else())


def now() -> float:
    """Seconds, in the time of the running loop."""
    return asyncio.get_running_loop().time()
