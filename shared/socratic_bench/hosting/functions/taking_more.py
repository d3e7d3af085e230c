"""More messages for an invocation that waits: a slow model keeps no other from being called.

An invocation lasts until its slowest call, and AWS runs only so many at a time. While one waits, it
takes further messages from the queue as a container does, and finishes those before it ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from socratic_bench.concurrency.deadlines import wait_at_most
from socratic_bench.consuming.dispatch import BatchDispatcher
from socratic_bench.consuming.worker import Worker

MORE_AFTER_SECONDS: Final = 1.0
"""How long an invocation works on its own messages alone."""


@asynccontextmanager
async def taking_more(
    dispatcher: BatchDispatcher, make_worker: Callable[[], Worker] | None, drain_after: float
) -> AsyncIterator[None]:
    """Let a worker take messages while the context is open for long; it finishes at the end.

    After `drain_after` seconds neither the worker nor the dispatcher begins anything. Without
    `make_worker` there is no worker. Raises the errors that end the worker for good.
    """
    worker = None if make_worker is None else make_worker()
    ended = asyncio.Event()
    taking = None if worker is None else asyncio.create_task(_take(worker, ended))

    def drain() -> None:
        dispatcher.drain()
        if worker is not None:
            worker.drain()

    draining = asyncio.get_running_loop().call_later(drain_after, drain)
    try:
        yield
        ended.set()
        if worker is not None and taking is not None:
            # Not drained: each of its runs would go back as a message of its own.
            worker.take_no_more()
            await taking
    finally:
        draining.cancel()
        if taking is not None and not taking.done():
            taking.cancel()
            await asyncio.wait([taking])


async def _take(worker: Worker, ended: asyncio.Event) -> None:
    await wait_at_most(MORE_AFTER_SECONDS, ended)
    if not ended.is_set():
        await worker.run()
