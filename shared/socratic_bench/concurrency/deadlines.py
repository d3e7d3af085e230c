"""Deadlines that hold, whatever is waited for.

A driver may not be left alone with a statement or a connection it is at work on, so that cancelling
what waits for it can take as long as the driver has patience. Whoever asked goes on in time all the
same; what was asked is cancelled, and comes to its end by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any, Final, TypeVar

Result = TypeVar("Result")

_ending: Final[set[asyncio.Task[Any]]] = set()
"""Work nobody waits for any more; asyncio keeps no reference to it. The event loop waits for it in
the end."""


async def within(seconds: float, work: Awaitable[Result]) -> Result:
    """The result of `work`. Raises TimeoutError after `seconds`."""
    task = asyncio.create_task(_run(work))
    try:
        await asyncio.wait([task], timeout=seconds)
        if task.done():
            return task.result()
        raise TimeoutError
    finally:
        cancel_in_background(task)


async def wait_at_most(seconds: float | None, event: asyncio.Event) -> bool:
    """Wait for `event`, for at most `seconds`, or for ever; returns whether it is set."""
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


async def unless_stopped(work: Coroutine[Any, Any, None], stop: asyncio.Event) -> bool:
    """Do `work` unless `stop` is set first; whether it was done."""
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
        # Looked at, so that nobody is told of an error in what nobody wants any more.
        task.exception()


async def _run(work: Awaitable[Result]) -> Result:
    return await work
