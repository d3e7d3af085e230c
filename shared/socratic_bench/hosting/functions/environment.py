"""What outlives an invocation of a function: an event loop, and what was opened on it.

Lambda freezes the process after each invocation and thaws it for the next one. `asyncio.run` would
be wrong here: it closes its loop at the end, and with it every connection, lease and limiter that
belongs to the loop. The next invocation would pay for all of them again, or use a client of a
closed loop and fail. So there is one loop for the life of the process. A task on it holds what is
open; it sleeps while the process is frozen, and an overdue timer fires at the next invocation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from math import inf
from typing import Any, Final, Generic, Protocol, TypeVar

import structlog

log = structlog.get_logger(__name__)

CLOSE_SECONDS: Final = 10.0
"""Seconds that closing may take after an error that ended the work for good."""

ANSWER_SECONDS: Final = 0.5
"""Seconds before the end of an invocation at which it has to answer."""

Opened = TypeVar("Opened")
Result = TypeVar("Result")

LambdaEvent = Mapping[str, Any]


class LambdaContext(Protocol):
    """What Lambda tells of an invocation."""

    aws_request_id: str

    def get_remaining_time_in_millis(self) -> int:
        """Return the milliseconds until Lambda ends the process."""
        ...


class Environment(Generic[Opened]):
    """The execution environment of a function, as Lambda calls a process of it."""

    def __init__(self, open_: Callable[[], AbstractAsyncContextManager[Opened]]) -> None:
        """`open_` opens what invocations share; it is called at the first one."""
        self._open = open_
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready: asyncio.Future[Opened] | None = None
        self._holding: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self._ends_at = -inf

    def run(self, context: LambdaContext, work: Callable[[Opened], Awaitable[Result]]) -> Result:
        """Do the work of an invocation; returns its result. Work and opening raise their errors."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        return self._loop.run_until_complete(self._run(context, work))

    def time_left(self) -> float:
        """Return the seconds until Lambda ends the process; none between invocations."""
        return max(0.0, self._ends_at - asyncio.get_running_loop().time())

    async def reopen(self) -> None:
        """Close what is open; the next invocation opens it anew. After an error that ended it."""
        holding, self._holding, self._ready = self._holding, None, None
        if holding is None:
            return
        self._stop.set()
        seconds = min(CLOSE_SECONDS, max(0.0, self.time_left() - ANSWER_SECONDS))
        _, late = await asyncio.wait([holding], timeout=seconds)
        for task in late:
            task.cancel()

    async def _run(
        self, context: LambdaContext, work: Callable[[Opened], Awaitable[Result]]
    ) -> Result:
        now = asyncio.get_running_loop().time()
        self._ends_at = now + context.get_remaining_time_in_millis() / 1000
        structlog.contextvars.bind_contextvars(request_id=context.aws_request_id)
        return await work(await self._opened())

    async def _opened(self) -> Opened:
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            self._stop = asyncio.Event()
            self._holding = asyncio.create_task(self._hold(self._ready, self._stop))
        try:
            return await asyncio.shield(self._ready)
        except BaseException:
            await self.reopen()
            raise

    async def _hold(self, ready: asyncio.Future[Opened], stop: asyncio.Event) -> None:
        """Hold what is open in one task: what a task enters, the same one has to leave."""
        try:
            async with self._open() as opened:
                ready.set_result(opened)
                await stop.wait()
        except Exception as error:
            if not ready.done():
                ready.set_exception(error)
                return
            log.exception("function not closed")
