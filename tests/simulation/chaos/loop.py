"""An event loop without threads and sockets, whose time passes only while all tasks wait.

Every process of the simulation shares it. A context variable names the process of each callback:
the loop parks the callbacks of a frozen process, as a stopped process runs none.

Nothing here depends on the address of an object or on the version of Python: timers due at the same
time run in the order of their creation, and sets of tasks have the order of that, too.
"""

from __future__ import annotations

import asyncio
import heapq
from asyncio import base_events, events
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import Executor
from contextvars import Context, ContextVar, copy_context
from itertools import count
from typing import Any, TypeVar

Result = TypeVar("Result")

MOST_ROUNDS = 100_000
"""Rounds of callbacks at one moment, after which time stands still for ever."""

PROCESS: ContextVar[str] = ContextVar("process", default="")
"""The name of the process whose code runs; empty for the world around the processes."""


class CountedTask(asyncio.Task[Any]):
    """A task with its number as its hash: a set of tasks has the same order in every run."""

    def __init__(self, work: Any, *, number: int, **options: Any) -> None:
        self.number = number  # before asyncio adds the task to its sets
        super().__init__(work, **options)

    def __hash__(self) -> int:
        return self.number


class SimulatedLoop(base_events.BaseEventLoop):
    """Runs ready callbacks in turn, and jumps to the next timer once none is ready."""

    def __init__(self, on_task: Callable[[str, asyncio.Task[Any]], None]) -> None:
        """`on_task` hears of each new task, with the name of its process."""
        super().__init__()
        self._now = 0.0
        self._rounds = 0
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._order = count()
        self._numbers = count()
        self._callbacks: deque[asyncio.Handle] = self._ready  # type: ignore[attr-defined]
        self._parked: dict[str, deque[asyncio.Handle]] = {}
        self._on_task = on_task
        self.set_task_factory(self._new_task)

    def time(self) -> float:
        return self._now

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        timer = events.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._order), timer))
        return timer

    def freeze(self, process: str) -> None:
        """Run no more callbacks of a process until `thaw`."""
        self._parked.setdefault(process, deque())

    def thaw(self, process: str) -> None:
        """Run the parked callbacks of a process now, and its later ones again."""
        self._callbacks.extend(self._parked.pop(process, ()))

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Run the function at once, in place of a thread."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - it belongs to the caller, as from a thread
            future.set_exception(error)
        return future

    def _new_task(
        self,
        loop: asyncio.AbstractEventLoop,
        work: Coroutine[Any, Any, Any] | Generator[Any, None, Any],
        **options: Any,
    ) -> asyncio.Task[Any]:
        task = CountedTask(work, number=next(self._numbers), loop=loop, **options)
        context = options.get("context")
        process = PROCESS.get() if context is None else context.get(PROCESS, "")
        self._on_task(process, task)
        return task

    def _run_once(self) -> None:
        if not self._callbacks:
            self._pass_time()
        self._rounds += 1
        if self._rounds > MOST_ROUNDS:
            raise AssertionError(f"tasks run for ever, at {self._now} s")
        timers = self._timers
        while timers and timers[0][0] <= self._now:
            timer = heapq.heappop(timers)[2]
            if not timer.cancelled():
                self._callbacks.append(timer)
        callbacks = self._callbacks
        for _ in range(len(callbacks)):
            handle = callbacks.popleft()
            if handle.cancelled():
                continue
            if self._parked and (process := self._process_of(handle)) in self._parked:
                self._parked[process].append(handle)
            else:
                handle._run()

    def _pass_time(self) -> None:
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
        if not self._timers:
            raise AssertionError("everybody waits for ever")
        if self._timers[0][0] > self._now:
            self._now = self._timers[0][0]
            self._rounds = 0

    @staticmethod
    def _process_of(handle: asyncio.Handle) -> str:
        name: str = handle._context.get(PROCESS, "")  # type: ignore[attr-defined]
        return name

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Do nothing: the timer leaves the heap when it is due."""

    def _write_to_self(self) -> None:
        """Do nothing: no other thread wakes the loop."""

    def _process_events(self, event_list: list[Any]) -> None:
        """Do nothing: there are no sockets."""


def context_of(process: str) -> Context:
    """Return a context for the callbacks of a process, or of the world under the empty name."""
    context = copy_context()
    context.run(PROCESS.set, process)
    return context


def at_once(work: Awaitable[Result]) -> Result:
    """Return the result of work that only yields to other tasks, and waits for nothing."""
    steps = work.__await__()
    try:
        while True:
            waits_for = next(steps)
            assert waits_for is None, f"this work waits for {waits_for}"
    except StopIteration as end:
        result: Result = end.value
        return result
