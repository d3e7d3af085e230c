"""Deletes what waits of a group, in a queue that SQS cannot search."""

from __future__ import annotations

import asyncio
from typing import Final

from socratic_bench.adapters.brokers.sqs.copies import Copies, PutBack
from socratic_bench.adapters.brokers.sqs.server_queue import (
    MOST_ENTRIES,
    ServerQueue,
    handles_of,
)

_INVISIBLE_SECONDS: Final = 30.0
_WAIT_SECONDS: Final = 1


async def remove_group(queue: ServerQueue, copies: Copies, group: str) -> None:
    """Pass over the visible messages of a queue once; delete those of the group.

    The others go back as copies, uncounted. Delayed messages and those in other hands stay.
    """
    left = await queue.depth()
    while left > 0:
        some = await queue.receive(MOST_ENTRIES, invisible=_INVISIBLE_SECONDS, wait=_WAIT_SECONDS)
        if not some:
            return
        left -= len(some)
        others = [each for each in some if each.encoded.group != group]
        doomed = [each for each in some if each.encoded.group == group]
        await asyncio.gather(
            queue.delete(handles_of(doomed)),
            copies.put_back([PutBack(each, postponed=each.state.postponed) for each in others]),
        )
