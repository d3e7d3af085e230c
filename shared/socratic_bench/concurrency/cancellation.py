"""Work that a cancellation may not tear apart."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Final, TypeVar

CANCEL_AGAIN_SECONDS: Final = 10.0
"""After which a task that goes on although it was cancelled is cancelled again. To end in good
order takes less."""

Result = TypeVar("Result")


async def finish_despite_cancel(
    work: Awaitable[Result], *, patience: float | None = None
) -> Result:
    """The result of `work`, of which a cancellation has to await the end, for `patience` seconds.

    Some work cannot be left alone in the middle: a statement whose thread or server goes on with
    it would take its connection along, perhaps with the lock it was just about to get.
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


async def cancelled(task: asyncio.Task[None]) -> None:
    """Cancel a task, and wait for its end.

    A cancellation may get lost in a driver: one that comes while a channel is being closed, say,
    ends there as the error that closed it.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=CANCEL_AGAIN_SECONDS)


async def _end_of(task: asyncio.Future[Result], patience: float | None) -> None:
    """Wait for the end of a task whatever comes, but no longer than that."""
    loop = asyncio.get_running_loop()
    deadline = None if patience is None else loop.time() + patience
    while not task.done():
        left = None if deadline is None else deadline - loop.time()
        if left is not None and left <= 0:
            return
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task], timeout=left)
