"""The host of workers: ready once broker and store answer, drained on a stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from socratic_bench.concurrency.deadlines import unless_stopped, wait_at_most
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.consuming.worker import Observer, Worker
from socratic_bench.domain.run import RETRIES
from socratic_bench.errors import BrokerUnavailable, StoreUnavailable
from socratic_bench.hosting.http.readiness import Check, Readiness
from socratic_bench.hosting.http.server import serving
from socratic_bench.hosting.metrics import (
    CONTENT_TYPE,
    DepthMetrics,
    MessageMetrics,
    Metrics,
    ReadyMetrics,
)
from socratic_bench.hosting.starting import naming, reach_all
from socratic_bench.ports.broker import Broker, WorkQueue
from socratic_bench.ports.stores.experiments import Experiments
from socratic_bench.ports.stores.store import Store
from socratic_bench.service_settings import WorkerProcessSettings

LOOK_SECONDS: Final = 0.5

TOLERANCE_SECONDS: Final = 10.0
"""Seconds that a problem may last: a consumer needs a moment for a new queue."""


class QueueProblems:
    """Watches the result of `Broker.problems`."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._since: dict[str, float] = {}

    async def watch(self, stop: asyncio.Event) -> None:
        """Look every LOOK_SECONDS until `stop` is set."""
        while not stop.is_set():
            now = asyncio.get_running_loop().time()
            self._since = {each: self._since.get(each, now) for each in self._broker.problems()}
            await wait_at_most(LOOK_SECONDS, stop)

    async def until_none(self, patience: float) -> None:
        """Wait for the end of all problems, for at most `patience` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while self._broker.problems():  # noqa: ASYNC110 - the broker signals no change
                    await asyncio.sleep(LOOK_SECONDS / 50)

    async def check(self) -> None:
        """Raise BrokerUnavailable while a problem lasts."""
        then = asyncio.get_running_loop().time() - TOLERANCE_SECONDS
        if lasting := [problem for problem, since in self._since.items() if since < then]:
            raise BrokerUnavailable("; ".join(lasting))


@dataclass(frozen=True, slots=True)
class RunningGroups:
    """Lists the groups of the requests of all incomplete experiments, and that of retries."""

    store: Experiments

    async def __call__(self) -> frozenset[str]:
        """Return the groups. Raises StoreError."""
        running = await self.store.running()
        return frozenset({RETRIES}).union(*(each.groups for each in running))


def health_app(readiness: Readiness, metrics: Metrics) -> Starlette:
    """Return an application that serves liveness, readiness and metrics."""

    async def is_alive(_request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def is_ready(_request: Request) -> Response:
        problem = await readiness.problem()
        if problem is None:
            return JSONResponse({"status": "ok"})
        return JSONResponse({"status": "unavailable", "reason": problem}, status_code=503)

    async def show_metrics(_request: Request) -> Response:
        return Response(metrics.text(), media_type=CONTENT_TYPE)

    return Starlette(
        routes=[
            Route("/healthz", is_alive),
            Route("/readyz", is_ready),
            Route("/metrics", show_metrics),
        ]
    )


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
