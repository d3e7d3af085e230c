"""Deadlines for awaited work, also across a freeze, and work that no cancellation interrupts.

Cancelling work that awaits a driver's statement can take as long as the statement. The caller
continues in time all the same; the cancelled work ends in the background.

A process that was stopped and goes on finds all its timers overdue, and what was sent to it unread.
`asyncio.timeout` would cancel the work before it sees that its answer has come.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from contextlib import suppress
from typing import Any, Final, Self, TypeVar

CANCEL_AGAIN_SECONDS: Final = 10.0
"""Seconds after which a task that ignored its cancellation is cancelled again. An orderly end takes
less."""

Result = TypeVar("Result")


async def finish_despite_cancel(
    work: Awaitable[Result], *, patience: float | None = None
) -> Result:
    """Await `work`; on cancellation let it finish first, for at most `patience` seconds.

    Some work cannot be abandoned halfway: an abandoned statement goes on in its thread or server,
    and keeps its connection, perhaps with a lock that it is about to get.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await _end_of(task, patience)
        task.cancel()
        if task.done() and not task.cancelled():
            task.exception()
        raise


async def cancelled(task: asyncio.Task[object]) -> None:
    """Cancel a task, and wait for its end.

    A driver may lose a cancellation: one that arrives while a channel closes, for example, turns
    into the error that closed the channel.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=CANCEL_AGAIN_SECONDS)


async def _end_of(task: asyncio.Future[Result], patience: float | None) -> None:
    """Wait for the end of a task, through cancellations, for at most `seconds`."""
    loop = asyncio.get_running_loop()
    deadline = None if patience is None else loop.time() + patience
    while not task.done():
        left = None if deadline is None else deadline - loop.time()
        if left is not None and left <= 0:
            return
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task], timeout=left)


_ending: Final[set[asyncio.Task[Any]]] = set()
"""Cancelled work that ends in the background; asyncio keeps no reference to it. The event loop
waits for it at shutdown."""


async def within(seconds: float, work: Awaitable[Result]) -> Result:
    """Return the result of `work`. Raises TimeoutError after `seconds`."""
    task = asyncio.create_task(_run(work))
    try:
        await asyncio.wait([task], timeout=seconds)
        if task.done():
            return task.result()
        raise TimeoutError
    finally:
        cancel_in_background(task)


async def wait_at_most(seconds: float | None, event: asyncio.Event) -> bool:
    """Wait for `event`, for at most `seconds` or without a deadline; tells whether it is set."""
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


async def unless_stopped(work: Coroutine[Any, Any, None], stop: asyncio.Event) -> bool:
    """Await `work` unless `stop` is set first; tells whether the work was done."""
    doing, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({doing, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            doing.result()
        return doing.done()
    finally:
        cancel_in_background(doing)
        cancel_in_background(stopping)


def cancel_in_background(task: asyncio.Task[Any]) -> None:
    """Cancel a task without waiting for its end."""
    if not task.done():
        task.cancel()
        _ending.add(task)
        task.add_done_callback(_ended)


def _ended(task: asyncio.Task[Any]) -> None:
    _ending.discard(task)
    if not task.cancelled():
        # Retrieve the error, so that asyncio does not log it.
        task.exception()


async def _run(work: Awaitable[Result]) -> Result:
    return await work


FROZEN_SECONDS: Final = 1.0
"""Seconds by which a timer is late if the process was frozen."""

THAW_SECONDS: Final = 2.0
"""Seconds to read what came in meanwhile."""


class ThawingTimeout:
    """`asyncio.timeout_at`, but work that was frozen at its deadline gets THAW_SECONDS more."""

    def __init__(self, when: float | None = None) -> None:
        """Without a time of the loop there is no deadline until `reschedule`."""
        self._when = when
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[object] | None = None
        self._cancellations = 0
        self._is_over = False
        self._is_expired = False
        self._has_thawed = False

    async def __aenter__(self) -> Self:
        self._task = asyncio.current_task()
        if self._task is None:
            raise RuntimeError("a timeout needs a task")
        self._cancellations = self._task.cancelling()
        self.reschedule(self._when)
        return self

    async def __aexit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, *_: object
    ) -> None:
        task, self._task = self._task, None
        self._cancel_timer()
        if self._is_over and task is not None:
            self._is_expired = True
            is_alone = task.uncancel() <= self._cancellations
            if (
                is_alone
                and error_type is not None
                and issubclass(error_type, asyncio.CancelledError)
            ):
                raise TimeoutError from error

    def reschedule(self, when: float | None) -> None:
        """Move the deadline to a time of the loop, or remove it."""
        self._when = when
        self._cancel_timer()
        if when is not None and self._task is not None and not self._is_over:
            self._timer = asyncio.get_running_loop().call_at(when, self._fire)

    def when(self) -> float | None:
        """Return the deadline as a time of the loop; None without one."""
        return self._when

    def expired(self) -> bool:
        """Tell whether the deadline has ended the work."""
        return self._is_expired

    def _fire(self) -> None:
        now = asyncio.get_running_loop().time()
        is_late = self._when is not None and now - self._when > FROZEN_SECONDS
        if is_late and not self._has_thawed:
            self._has_thawed = True
            self.reschedule(now + THAW_SECONDS)
        elif self._task is not None:
            self._is_over = True
            self._task.cancel()

    def _cancel_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
