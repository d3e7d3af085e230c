"""Work that a cancellation must not interrupt halfway."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Final, TypeVar

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
