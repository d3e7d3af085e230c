"""Hosting workers: ready once what they need is there, drained when told to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from typing import Final

import structlog

from socratic_bench.concurrency.deadlines import unless_stopped
from socratic_bench.consuming.observing import Observer
from socratic_bench.consuming.queues import CURATOR_RUN_FAILED
from socratic_bench.consuming.worker import Worker
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
from socratic_bench.ports.broker import Broker
from socratic_bench.ports.stores.store import Store
from socratic_bench.service_settings import WorkerProcessSettings

log = structlog.get_logger(__name__)

HEALTH_SHUTDOWN: Final = 1.0
"""Seconds that answers about health may take to end."""

OpenWorkers = Callable[[Observer, Metrics], AbstractAsyncContextManager[Sequence[Worker]]]
"""The workers of a service, which tell the observer what they do, and may add metrics."""


async def host_workers(
    settings: WorkerProcessSettings,
    broker: Broker,
    store: Store | None,
    open_workers: OpenWorkers,
    stop: asyncio.Event,
) -> None:
    """Run workers until `stop` is set and they are drained.

    What is in hand after the deadline is given back. Broker and store are their owner's to close.
    Raises CannotStart, and an ExceptionGroup of what broke a worker for good.
    """
    metrics = Metrics()
    observer = MessageMetrics(metrics)
    depths, ready = DepthMetrics(metrics), ReadyMetrics(metrics)
    checks: dict[str, Check] = {"broker": lambda: broker.depth(CURATOR_RUN_FAILED.name)}
    if store is not None:
        checks["store"] = store.ping
    readiness = Readiness(checks)
    async with AsyncExitStack() as opened:
        with naming("SOCRATIC_HEALTH_PORT"):
            address = await opened.enter_async_context(_health(settings, readiness, metrics))
        log.info("serving", address=address)
        if not await unless_stopped(reach_all(broker, store, settings.start_deadline), stop):
            return
        async with open_workers(observer, metrics) as workers:
            queues = [worker.queue for worker in workers]
            observer.expect(queues)
            await opened.enter_async_context(depths.watching(broker, queues))
            async with asyncio.TaskGroup() as tasks:
                running = [tasks.create_task(worker.run()) for worker in workers]
                checks["store or broker"] = partial(_check_progress, workers)
                queue_problems = QueueProblems(broker)
                checks["broker's queue"] = queue_problems.check
                tasks.create_task(queue_problems.watch(stop))
                await unless_stopped(queue_problems.until_none(settings.start_deadline), stop)
                readiness.start()
                await opened.enter_async_context(ready.watching(readiness))
                log.info("ready", queues=", ".join(queues))
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

    A database that is read-only or full answers every question, and takes nothing.
    """
    for worker in workers:
        if (error := worker.waits_for) is not None:
            raise StoreUnavailable(str(error))


def _drain_deadline(settings: WorkerProcessSettings, workers: Sequence[Worker]) -> float:
    """Seconds for what is in hand: as it was set, or as long as the longest call may take."""
    if "drain_deadline" in settings.model_fields_set:
        return settings.drain_deadline
    return max(settings.drain_deadline, *(worker.longest() for worker in workers))


async def _drain(
    workers: Sequence[Worker], running: Sequence[asyncio.Task[None]], deadline: float
) -> None:
    """Let workers finish what is in hand; after the deadline, have them give it back."""
    log.info("draining", deadline=deadline)
    for worker in workers:
        worker.drain()
    _, late = await asyncio.wait(running, timeout=deadline)
    for task in late:
        log.warning("not drained in time: what is in hand is given back", deadline=deadline)
        task.cancel()
