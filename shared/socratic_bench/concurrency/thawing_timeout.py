"""A timeout that a frozen process does not miss: what came in meanwhile is still taken.

A process that was stopped and goes on finds all its timers overdue, and what was sent to it unread.
`asyncio.timeout` would cancel the work before it sees that its answer has come.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Final, Self

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
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
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
