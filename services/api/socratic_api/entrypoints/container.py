"""The API as a process of its own, and as part of another process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Final

import structlog

from socratic_api.answers.streams import Streams
from socratic_api.bootstrap import api_readiness, build_app
from socratic_api.capabilities import Capabilities
from socratic_api.experiment_metrics import ExperimentMetrics
from socratic_api.http.access import require_keys
from socratic_api.settings import ApiSettings
from socratic_bench.concurrency.deadlines import unless_stopped
from socratic_bench.consuming.queues import RUNNER_RUN_REQUESTED, WORK_QUEUES
from socratic_bench.hosting.http.server import serving
from socratic_bench.hosting.metrics import DepthMetrics, Metrics, ReadyMetrics
from socratic_bench.hosting.process import run_process, stop_signals
from socratic_bench.hosting.starting import naming, opened_broker, opened_store, reach_all
from socratic_bench.hosting.workers import RunningGroups
from socratic_bench.ports.broker import Broker
from socratic_bench.ports.stores.store import Store
from socratic_bench.service_settings import load_settings

log = structlog.get_logger(__name__)

SWITCH_SECONDS: Final = 0.0005
"""Seconds after which a scoring thread yields to the event loop, which needs several turns for a
request. With Python's 5 ms, other requests take three times as long while large batches are
scored."""


def main() -> int:
    """Run the API until a signal stops it; returns the exit code."""
    return run_process("socratic_api", ApiSettings, _serve_process)


async def serve(
    store: Store,
    host: str,
    port: int,
    on_ready: Callable[[str], None],
    settings: ApiSettings | None = None,
    broker: Broker | None = None,
    scoring_broker: Broker | None = None,
) -> None:
    """Serve the API and the dashboard until SIGINT or SIGTERM, or until cancelled.

    `on_ready` gets the address once the API accepts connections. The caller prepares and closes the
    store and the brokers; without `broker` the API submits nothing, and `scoring_broker` takes
    responses to rescore in this process. Raises InvalidSettings if `host` and `port` cannot be
    bound, or if other machines could write without a key.
    """
    settings = settings or load_settings(ApiSettings)
    settings = settings.model_copy(update={"host": host, "port": port})
    require_keys(settings)
    sys.setswitchinterval(SWITCH_SECONDS)
    streams = Streams()
    capabilities = Capabilities(broker, scoring_broker, may_write=not settings.only_reads)
    app = build_app(store, settings, capabilities=capabilities, streams=streams)
    with stop_signals() as stop:
        async with serving(app, host, port, shutdown_timeout=settings.drain_deadline) as address:
            with closing_streams(streams):
                on_ready(address)
                await stop.wait()


@contextmanager
def closing_streams(streams: Streams) -> Iterator[None]:
    """Stop the streams when the context ends: the server waits for the end of every answer."""
    try:
        yield
    finally:
        streams.stop()


async def _serve_process(settings: ApiSettings, stop: asyncio.Event) -> None:
    require_keys(settings)
    sys.setswitchinterval(SWITCH_SECONDS)
    async with AsyncExitStack() as opened:
        store = await opened.enter_async_context(opened_store(settings.store_url))
        broker = None
        if settings.broker_url is not None:
            broker = await opened.enter_async_context(opened_broker(settings.broker_url))
        readiness, metrics = api_readiness(store, settings), Metrics()
        streams = Streams()
        app = build_app(
            store,
            settings,
            readiness=readiness,
            metrics=metrics,
            capabilities=Capabilities(broker, may_write=not settings.only_reads),
            streams=streams,
        )
        with naming("SOCRATIC_PORT"):
            address = await opened.enter_async_context(
                serving(app, settings.host, settings.port, shutdown_timeout=settings.drain_deadline)
            )
        opened.enter_context(closing_streams(streams))
        log.info("serving", address=address)
        if not await unless_stopped(reach_all(broker, store, settings.start_deadline), stop):
            return
        experiments = ExperimentMetrics(metrics)
        await opened.enter_async_context(experiments.watching(store))
        if broker is not None:
            queues = [queue.name for queue in WORK_QUEUES]
            groups = {RUNNER_RUN_REQUESTED.name: RunningGroups(store)}
            depths = DepthMetrics(metrics).watching(broker, queues, groups)
            await opened.enter_async_context(depths)
        readiness.start()
        await opened.enter_async_context(ReadyMetrics(metrics).watching(readiness))
        log.info("ready", address=address)
        await stop.wait()
        readiness.drain()
        log.info("draining", deadline=settings.drain_deadline)
