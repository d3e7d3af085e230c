"""The runner as a process of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from socratic_bench.adapters.clock import SystemClock
from socratic_bench.concurrency import event_loop
from socratic_bench.consuming.queues import (
    CURATOR_RUN_FAILED,
    JUDGE_RESPONSE_RECORDED,
    RUNNER_RUN_REQUESTED,
)
from socratic_bench.consuming.worker import Observer, Worker
from socratic_bench.hosting.metrics import Metrics
from socratic_bench.hosting.process import run_process
from socratic_bench.hosting.starting import new_owner, opened_broker, opened_store
from socratic_bench.hosting.workers import RunningGroups, host_workers
from socratic_runner.bootstrap import runner_dispatcher, runner_worker
from socratic_runner.entrypoints.endpoint_secrets import SecretEndpoints
from socratic_runner.leases.book import LeaseBook
from socratic_runner.limits.limiters import ConcurrencyLimiters
from socratic_runner.metrics.scraped import (
    CallMetrics,
    ModelNames,
    add_breaker_metrics,
    add_lease_metrics,
    add_limit_metrics,
)
from socratic_runner.model_pool import ModelPool
from socratic_runner.settings import RunnerProcessSettings
from socratic_runner.troubles import Troubles, tell_the_log


def main() -> int:
    """Run the runner until a signal stops it; returns the exit code."""
    return run_process("socratic_runner", RunnerProcessSettings, _serve, run=event_loop.run)


async def _serve(settings: RunnerProcessSettings, stop: asyncio.Event) -> None:
    endpoints = SecretEndpoints(settings, base_folder=settings.runner_folder)
    async with (
        opened_broker(settings.broker_url) as broker,
        opened_store(settings.store_url) as store,
    ):

        @asynccontextmanager
        async def workers(observer: Observer, metrics: Metrics) -> AsyncIterator[Sequence[Worker]]:
            model_names = ModelNames()
            calls = CallMetrics(metrics, model_names)

            def watch(limiters: ConcurrencyLimiters, leases: LeaseBook, pool: ModelPool) -> None:
                add_limit_metrics(metrics, limiters, model_names)
                add_lease_metrics(metrics, leases.answers)
                add_breaker_metrics(metrics, pool, model_names)

            async with runner_dispatcher(
                broker.publish,
                store,
                SystemClock(),
                endpoints.open_client,
                settings,
                owner=new_owner("runner"),
                limits=store,
                observer=calls,
                troubles=Troubles(calls, tell_the_log),
                watch=watch,
            ) as dispatcher:
                running = RunningGroups(store)
                yield [
                    runner_worker(broker, dispatcher, settings, groups=running, observer=observer)
                ]

        queues = (RUNNER_RUN_REQUESTED, JUDGE_RESPONSE_RECORDED, CURATOR_RUN_FAILED)
        await host_workers(settings, broker, store, workers, stop, queues=queues, broadcasts=())
