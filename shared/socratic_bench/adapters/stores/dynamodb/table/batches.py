"""The sizes of batches, and the work on several of them at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Iterator
from itertools import islice
from typing import Final, TypeVar

READ: Final = 100
"""The most keys of one BatchGetItem."""

WRITTEN: Final = 25
"""The most items of one BatchWriteItem."""

Each = TypeVar("Each")


def chunks(items: Iterable[Each], size: int) -> Iterator[list[Each]]:
    """Yield `items` in order, `size` at a time."""
    remaining = iter(items)
    while chunk := list(islice(remaining, size)):
        yield chunk


async def together(work: Iterable[Awaitable[Each]]) -> list[Each]:
    """Await all of `work`; an error cancels the rest, and is raised once that has ended."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
