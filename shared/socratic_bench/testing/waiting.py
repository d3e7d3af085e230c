"""Waiting for an event, longer than a busy machine takes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeVar

PATIENCE: Final = 120.0
"""Seconds after which a test takes an event as lost. Only a failure takes so long."""

INTERVAL: Final = 0.05
"""Seconds between two looks at a thing that announces no change, such as another process."""

Answer = TypeVar("Answer")


@asynccontextmanager
async def waiting_for(what: str, patience: float = PATIENCE) -> AsyncIterator[None]:
    """Raise AssertionError, naming `what`, if the body takes longer than `patience` seconds.

    Any other error of the body gets a note that names `what`.
    """
    begun = time.monotonic()
    limit = asyncio.timeout(patience)
    try:
        async with limit:
            yield
    except BaseException as error:
        if limit.expired():
            raise AssertionError(f"waited {patience:g} s for {what}") from error
        error.add_note(f"after {time.monotonic() - begun:.1f} s of waiting for {what}")
        raise


async def until(
    ask: Callable[[], Awaitable[Answer]],
    wanted: Callable[[Answer], bool],
    what: str,
    patience: float = PATIENCE,
) -> Answer:
    """Ask until the answer is wanted, and return it. A failure shows the last answer."""
    answers: list[Answer] = []
    try:
        async with waiting_for(what, patience):
            while not wanted(answer := await ask()):
                answers[:] = [answer]
                await asyncio.sleep(INTERVAL)
    except BaseException as error:
        error.add_note(f"last answer: {answers!r}")
        raise
    return answer
