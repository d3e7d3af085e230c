"""The judge and the curator in this process, for what it publishes itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

from socratic_bench.adapters.brokers.memory.broker import MemoryBroker
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.consuming.worker import Worker
from socratic_bench.hosting.starting import first_cause
from socratic_bench.ports.broker import Broker
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.stores.store import Store
from socratic_bench.service_settings import load_settings
from socratic_curator.bootstrap import curator_workers
from socratic_curator.settings import CuratorSettings
from socratic_judge.bootstrap import judge_worker
from socratic_judge.settings import JudgeSettings

MAX_WAITING: Final = 2_000
"""The most messages that wait in a queue: publishing goes no faster than the work."""

DRAIN_DEADLINE: Final = 10.0
"""Seconds that work in hand may take after a stop; calls may take their own deadlines. What waits
in a queue may take as many before."""

LOOK_SECONDS: Final = 0.01
"""Seconds between two looks at a queue after a stop."""


@asynccontextmanager
async def scoring_broker(store: Store, clock: Clock) -> AsyncIterator[MemoryBroker]:
    """Open a broker in this process whose responses are scored and folded into `store`.

    What was published is handled when the context ends, within a deadline. Raises the error that
    ends a worker.
    """
    broker = MemoryBroker(max_waiting=MAX_WAITING)
    try:
        await broker.declare(WORK_QUEUES, BROADCASTS)
        workers = scoring_workers(broker, store, clock)
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(worker.run()) for worker in workers]
            try:
                yield broker
            finally:
                await finish(broker, workers, running)
    except BaseExceptionGroup as group:
        raise first_cause(group) from group
    finally:
        await broker.close()


def scoring_workers(broker: Broker, store: Store, clock: Clock) -> tuple[Worker, ...]:
    """Return the workers of the judge and the curator, in the direction of the data."""
    judge = judge_worker(broker, clock, load_settings(JudgeSettings))
    return judge, *curator_workers(broker, store, clock, load_settings(CuratorSettings))


async def finish(
    broker: MemoryBroker, workers: Sequence[Worker], running: Sequence[asyncio.Task[None]]
) -> None:
    """Let each worker handle what is in its queue, within a deadline, before the next one stops.

    A worker that waits for the store leaves its queue: the next execution publishes again what is
    stored.
    """
    for worker, task in zip(workers, running, strict=True):
        worker.hurry()
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_DEADLINE):
                await _emptied(broker, worker, task)
        await drain(worker, task)


async def drain(worker: Worker, running: asyncio.Task[None]) -> None:
    """Let a worker finish what it has in hand, within a deadline; it takes no more."""
    worker.drain()
    _, unfinished = await asyncio.wait((running,), timeout=max(DRAIN_DEADLINE, worker.longest()))
    for late in unfinished:
        late.cancel()


async def _emptied(broker: MemoryBroker, worker: Worker, running: asyncio.Task[None]) -> None:
    while broker.outstanding_in(worker.queue) and worker.waits_for is None and not running.done():
        await asyncio.wait((running,), timeout=LOOK_SECONDS)
