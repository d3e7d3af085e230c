"""An event loop whose time passes only while everybody waits: hours in no time, always alike."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class _PassingTime(selectors.SelectSelector):
    """Instead of waiting for something to happen, lets the time pass until something is due."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
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


def in_virtual_time(work: Coroutine[Any, Any, Result]) -> Result:
    """The result of `work`. Fails if it leaves a task, or if everybody in it waits for ever."""

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
