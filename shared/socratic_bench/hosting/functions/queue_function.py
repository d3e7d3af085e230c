"""A function that SQS calls with batches: the dispatcher of a service, without a consumer.

It answers with the records that are to be delivered again, so that one of them keeps no other from
being done. A record comes back where the function ended first, or could not settle it. A retry, a
postponement and a dead letter are settled by a copy with its delay or reason, which SQS could not
be told otherwise.

An invocation lasts until its slowest call, and AWS runs only so many at a time. While one waits, it
takes further messages from the queue as a container does, and finishes those before it ends.

A function answers with the records that are to be delivered again, so that one of them keeps no
other from being done. A record comes back where the function ended first, or could not settle it. A
retry, a postponement and a dead letter are settled by a copy with its delay or reason, which SQS
could not be told otherwise.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

import structlog

from socratic_bench.concurrency.deadlines import THAW_SECONDS, wait_at_most
from socratic_bench.consuming.dispatch import BatchDispatcher
from socratic_bench.consuming.outcomes import Settlement
from socratic_bench.consuming.worker import Worker
from socratic_bench.errors import SocraticBenchError
from socratic_bench.hosting.functions.embedded_metrics import EmbeddedMetrics
from socratic_bench.hosting.functions.environment import (
    ANSWER_SECONDS,
    Environment,
    LambdaContext,
    LambdaEvent,
)
from socratic_bench.hosting.starting import first_cause
from socratic_bench.ports.broker import Delivery

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


log = structlog.get_logger(__name__)

DRAIN_SECONDS: Final = 8.0
"""Seconds before the end at which a function begins nothing more, and puts back what waits."""

LAST_SECONDS: Final = 2.0
"""Seconds before the end at which it cancels what is still under way, to answer in time."""

CLEAN_UP_SECONDS: Final = 0.5
"""Seconds that cancelled work gets to clean up. The function answers afterwards, even if the work
has not ended: it goes on in the next invocation."""


class InvocationRecords(Protocol):
    """Takes and settles the records of one invocation."""

    async def take(self, records: Sequence[Mapping[str, Any]]) -> Sequence[Delivery]:
        """Return what the handler is given: a record may hold several events, or none for now."""
        ...

    async def settle(self, settlements: Sequence[Settlement]) -> None:
        """Settle deliveries; one that the broker does not take stays unsettled."""
        ...

    async def put_back(self) -> None:
        """Put every unsettled record back into its queue, uncounted; one that cannot be now fails.

        Cancelled, it leaves them unsettled.
        """
        ...

    def response(self) -> dict[str, list[dict[str, str]]]:
        """Return the partial batch response: the records that SQS has to deliver again."""
        ...


class QueueWork(NamedTuple):
    """How a function works on one queue."""

    records: Callable[[], InvocationRecords]
    dispatcher: BatchDispatcher
    on_end: Callable[[], None] = lambda: None
    """Called at the end of each invocation."""

    more: Callable[[], Worker] | None = None
    """Makes the worker that takes more messages while an invocation waits; None for none."""


OpenWork = Callable[[], AbstractAsyncContextManager[Mapping[str, QueueWork]]]
"""Opens the work on each queue, by the queue's name."""


class QueueFunction:
    """Handles the events of SQS in one execution environment."""

    def __init__(self, name: str, open_work: OpenWork) -> None:
        """`name` is that of the service, for its metrics."""
        self._environment = Environment(open_work)
        self._metrics = EmbeddedMetrics(name, os.environ.get("SOCRATIC_STAGE", ""))
        self._reopen = False
        self._late: set[asyncio.Task[None]] = set()
        """Cancelled work of earlier invocations that has not ended."""

    def __call__(self, event: LambdaEvent, context: LambdaContext) -> dict[str, Any]:
        """Handle a batch; returns the ids of the records to deliver again, as Lambda wants them."""
        records = event["Records"]
        response = self._environment.run(context, partial(self._handle, records))
        returned = len(response["batchItemFailures"])
        self._metrics.write(
            {"RecordsHandled": len(records) - returned, "RecordsReturned": returned},
            request_id=context.aws_request_id,
        )
        return response

    def time_left(self) -> float:
        """Return the seconds until the invocation ends; none between invocations."""
        return self._environment.time_left()

    async def _handle(
        self, records: Sequence[Mapping[str, Any]], queues: Mapping[str, QueueWork]
    ) -> dict[str, list[dict[str, str]]]:
        work = _work_on(records, queues)
        taken = work.records()
        # Cancelled work may wait for a silent store; a task of its own keeps no answer waiting.
        working = asyncio.create_task(self._work(work, taken, records))
        await asyncio.wait([working], timeout=max(0.0, self.time_left() - LAST_SECONDS))
        if not self.time_left():
            # Frozen past its end, with what came in meanwhile unread.
            await asyncio.wait([working], timeout=THAW_SECONDS)
        if not working.done():
            # The end of the work ends its waits too.
            waits_for = work.dispatcher.waits_for
            log.warning("function not done in time", waits_for=str(waits_for or ""))
            await self._cancel(working)
            if waits_for is not None:
                await self._put_back(taken)
        else:
            working.result()
        work.on_end()
        if self._reopen:
            self._reopen = False
            await self._environment.reopen()
        return taken.response()

    async def _work(
        self, work: QueueWork, taken: InvocationRecords, records: Sequence[Mapping[str, Any]]
    ) -> None:
        if deliveries := await taken.take(records):
            await self._dispatch(work, deliveries, taken)

    async def _put_back(self, taken: InvocationRecords) -> None:
        """Put unsettled records back: what waits for the store or broker ended no function."""
        putting = asyncio.create_task(taken.put_back())
        left = self.time_left() - ANSWER_SECONDS - CLEAN_UP_SECONDS
        await asyncio.wait([putting], timeout=max(0.0, left))
        await self._cancel(putting)

    async def _cancel(self, task: asyncio.Task[None]) -> None:
        """Cancel a task, and wait a moment for its end."""
        task.cancel()
        await asyncio.wait([task], timeout=CLEAN_UP_SECONDS)
        self._late.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, late: asyncio.Task[None]) -> None:
        self._late.discard(late)
        if not late.cancelled() and (error := late.exception()) is not None:
            log.error("cancelled work failed", exc_info=error)

    async def _dispatch(
        self, work: QueueWork, deliveries: Sequence[Delivery], taken: InvocationRecords
    ) -> None:
        work.dispatcher.resume()
        # A suspect may end the process, and would take others along.
        more = None if any(each.suspect for each in deliveries) else work.more
        drain_after = max(0.0, self.time_left() - DRAIN_SECONDS)
        try:
            async with taking_more(work.dispatcher, more, drain_after):
                await work.dispatcher.dispatch(deliveries, taken.settle)
        except Exception as error:
            # What is settled stays so. The rest comes back, to what is opened anew.
            cause = first_cause(error)
            known = isinstance(cause, SocraticBenchError)
            log.critical(
                "function ended its work", reason=str(cause), exc_info=None if known else error
            )
            self._reopen = True


def _work_on(records: Sequence[Mapping[str, Any]], queues: Mapping[str, QueueWork]) -> QueueWork:
    """Return the work on the queue that the records come from."""
    source = str(records[0]["eventSourceARN"])
    for name, work in queues.items():
        if source.endswith(name):
            return work
    raise ValueError(f"this function takes no messages from {source}: it takes {', '.join(queues)}")
