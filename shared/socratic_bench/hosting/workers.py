"""The host of workers: ready once broker and store answer, drained on a stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from typing import Final

import structlog

from socratic_bench.concurrency.deadlines import unless_stopped
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.consuming.worker import Observer, Worker
from socratic_bench.errors import StoreUnavailable
from socratic_bench.hosting.failures import naming
from socratic_bench.hosting.http.health import health_app
from socratic_bench.hosting.http.readiness import Check, Readiness
from socratic_bench.hosting.http.server import serving
from socratic_bench.hosting.metrics.process_metrics import (
    DepthMetrics,
    MessageMetrics,
    Metrics,
    ReadyMetrics,
)
from socratic_bench.hosting.queue_problems import QueueProblems
from socratic_bench.hosting.starting import reach_all
from socratic_bench.ports.broker import Broker, WorkQueue
from socratic_bench.ports.stores.store import Store
from socratic_bench.service_settings import WorkerProcessSettings

log = structlog.get_logger(__name__)

HEALTH_SHUTDOWN: Final = 1.0
"""Seconds that health requests in hand have at shutdown."""

OpenWorkers = Callable[[Observer, Metrics], AbstractAsyncContextManager[Sequence[Worker]]]
"""Makes the workers of a service. They report to the observer, and may add metrics."""


async def host_workers(
    settings: WorkerProcessSettings,
    broker: Broker,
    store: Store | None,
    open_workers: OpenWorkers,
    stop: asyncio.Event,
    *,
    queues: Iterable[WorkQueue] = WORK_QUEUES,
    broadcasts: Iterable[str] = BROADCASTS,
) -> None:
    """Run workers until `stop` is set and they are drained.

    `queues` and `broadcasts` are what the service consumes and publishes: a role on AWS may look
    for no others. After the drain deadline, workers return their deliveries to the queue. The
    caller closes broker and store. Raises CannotStart, and an ExceptionGroup of errors that broke
    a worker for good.
    """
    metrics = Metrics()
    observer = MessageMetrics(metrics)
    depths, ready = DepthMetrics(metrics), ReadyMetrics(metrics)
    checks: dict[str, Check] = {"broker": broker.ping}
    if store is not None:
        checks["store"] = store.ping
    readiness = Readiness(checks)
    async with AsyncExitStack() as opened:
        with naming("SOCRATIC_HEALTH_PORT"):
            address = await opened.enter_async_context(_health(settings, readiness, metrics))
        log.info("serving", address=address)
        reaching = reach_all(
            broker, store, settings.start_deadline, queues=queues, broadcasts=broadcasts
        )
        if not await unless_stopped(reaching, stop):
            return
        async with open_workers(observer, metrics) as workers:
            consumed = [worker.queue for worker in workers]
            observer.expect(consumed)
            await opened.enter_async_context(depths.watching(broker, consumed))
            async with asyncio.TaskGroup() as tasks:
                running = [tasks.create_task(worker.run()) for worker in workers]
                checks["store or broker"] = partial(_check_progress, workers)
                queue_problems = QueueProblems(broker)
                checks["broker's queue"] = queue_problems.check
                tasks.create_task(queue_problems.watch(stop))
                await unless_stopped(queue_problems.until_none(settings.start_deadline), stop)
                readiness.start()
                await opened.enter_async_context(ready.watching(readiness))
                log.info("ready", queues=", ".join(consumed))
                await stop.wait()
                readiness.drain()
                await _drain(workers, running, _drain_deadline(settings, workers))


def _health(
    settings: WorkerProcessSettings, readiness: Readiness, metrics: Metrics
) -> AbstractAsyncContextManager[str]:
    app = health_app(readiness, metrics)
    return serving(
        app, settings.health_host, settings.health_port, shutdown_timeout=HEALTH_SHUTDOWN
    )


async def _check_progress(workers: Sequence[Worker]) -> None:
    """Raise StoreUnavailable while work waits for the store or the broker.

    A read-only or full database answers every query and takes no row.
    """
    for worker in workers:
        if (error := worker.waits_for) is not None:
            raise StoreUnavailable(str(error))


def _drain_deadline(settings: WorkerProcessSettings, workers: Sequence[Worker]) -> float:
    """Return the seconds for work in hand: the setting, or the longest deadline of a call."""
    if "drain_deadline" in settings.model_fields_set:
        return settings.drain_deadline
    return max(settings.drain_deadline, *(worker.longest() for worker in workers))


async def _drain(
    workers: Sequence[Worker], running: Sequence[asyncio.Task[None]], deadline: float
) -> None:
    """Let workers finish their work; after the deadline, have them return it to the queue."""
    log.info("draining", deadline=deadline)
    for worker in workers:
        worker.drain()
    _, late = await asyncio.wait(running, timeout=deadline)
    for task in late:
        log.warning("not drained in time: deliveries return to the queue", deadline=deadline)
        task.cancel()
