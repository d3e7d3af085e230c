"""Polls whose consumer ended before they did."""

from __future__ import annotations

import asyncio

import structlog

from socratic_bench.adapters.brokers.sqs.publishing.copies import Copies, PutBack
from socratic_bench.adapters.brokers.sqs.record import Incoming
from socratic_bench.concurrency.cancellation import cancelled
from socratic_bench.errors import BrokerError

log = structlog.get_logger(__name__)

Poll = asyncio.Task[list[Incoming]]


class OrphanedPolls:
    """Awaits polls that nobody waits for any more, and puts back what they bring.

    To cut a poll's connection may lose what SQS hands out at that moment, until it is visible
    again. What an orphaned poll brings, no handler began: it goes back uncounted.
    """

    def __init__(self) -> None:
        self._waiting: set[asyncio.Task[None]] = set()

    def adopt(self, poll: Poll, copies: Copies) -> None:
        """Take over a poll."""
        task = asyncio.create_task(_put_back(poll, copies), name="orphaned poll")
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    async def ended(self) -> None:
        """Wait until all have put back what they brought."""
        if self._waiting:
            await asyncio.wait(set(self._waiting))

    async def close(self) -> None:
        """Cut the polls that are still waiting."""
        for task in list(self._waiting):
            await cancelled(task)


async def _put_back(poll: Poll, copies: Copies) -> None:
    try:
        brought = await poll
        await copies.put_back([PutBack(each) for each in brought])
    except BrokerError as error:
        log.debug("a poll was lost", reason=str(error))
