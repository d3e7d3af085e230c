"""Deadlines that hold for any awaited work.

Cancelling work that awaits a driver's statement can take as long as the statement. The caller
continues in time all the same; the cancelled work ends in the background.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any, Final, TypeVar

Result = TypeVar("Result")

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
