"""Waiting for what has to happen, for longer than any machine takes that is merely busy."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from tests import evidence

PATIENCE = 120.0
"""Seconds after which a test takes what it waits for as hung. Only a failure takes so long."""

INTERVAL = 0.05
"""Seconds between two looks at what tells nobody that it has changed, such as another process."""

Answer = TypeVar("Answer")


@asynccontextmanager
async def waiting_for(what: str, patience: float = PATIENCE) -> AsyncIterator[None]:
    """Fail, naming `what`, where the body takes longer than `patience` seconds.

    Whatever else ends the body, a failed test says that it was waiting for this.
    """
    begun = time.monotonic()
    limit = asyncio.timeout(patience)
    try:
        async with limit:
            yield
    except BaseException as error:
        waited = time.monotonic() - begun
        evidence.keep("waiting", lambda: f"{waited:.1f} s for {what}")
        if limit.expired():
            raise AssertionError(f"waited {patience:g} s for {what}") from error
        raise


async def until(
    ask: Callable[[], Awaitable[Answer]],
    wanted: Callable[[Answer], bool],
    what: str,
    patience: float = PATIENCE,
) -> Answer:
    """Ask again and again until the answer is wanted. A failure shows the last answer."""
    answers: list[Answer] = []
    async with waiting_for(what, patience):
        try:
            while not wanted(answer := await ask()):
                answers[:] = [answer]
                await asyncio.sleep(INTERVAL)
        except BaseException:
            evidence.keep(f"last answer about {what}", lambda: repr(answers))
            raise
    return answer


def block_until(look: Callable[[], Answer], what: str, patience: float = PATIENCE) -> Answer:
    """Look again and again until what is seen is true; for tests without an event loop."""
    begun = time.monotonic()
    try:
        while not (seen := look()):
            assert time.monotonic() < begun + patience, f"waited {patience:g} s for {what}"
            time.sleep(INTERVAL)
    except BaseException:
        waited = time.monotonic() - begun
        evidence.keep("waiting", lambda: f"{waited:.1f} s for {what}")
        raise
    return seen
