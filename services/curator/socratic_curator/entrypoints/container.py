"""The curator as a process of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import get_args

from socratic_bench.adapters.clock import SystemClock
from socratic_bench.consuming.queues import (
    CURATOR_RESPONSE_SCORED,
    CURATOR_RUN_FAILED,
    WORK_QUEUES,
)
from socratic_bench.consuming.worker import Observer, Worker
from socratic_bench.hosting.metrics import Metrics, add_counter
from socratic_bench.hosting.process import run_process
from socratic_bench.hosting.starting import new_owner, opened_broker, opened_store
from socratic_bench.hosting.workers import host_workers
from socratic_bench.ports.broker import Broker
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.stores.store import Store
from socratic_curator.bootstrap import curator_workers
from socratic_curator.reconciling.healer import SentAgain
from socratic_curator.reconciling.reconciler import Reconciler, reconciling
from socratic_curator.settings import CuratorProcessSettings


def add_reconciler_metrics(metrics: Metrics, sent_again: Mapping[SentAgain, int]) -> None:
    """Register the reconciler's counts by kind; a kind that was never sent again counts 0."""

    def read() -> Iterator[tuple[Sequence[str], float]]:
        for what in get_args(SentAgain):
            yield [what], sent_again.get(what, 0)

    add_counter(
        metrics,
        "socratic_reconciled",
        "What was sent again because the broker had lost it, by kind",
        ["what"],
        read,
    )


def main() -> int:
    """Run the curator until a signal stops it; returns the exit code."""
    return run_process("socratic_curator", CuratorProcessSettings, _serve)


async def _serve(settings: CuratorProcessSettings, stop: asyncio.Event) -> None:
    async with (
        opened_broker(settings.broker_url) as broker,
        opened_store(settings.store_url) as store,
    ):

        @asynccontextmanager
        async def workers(observer: Observer, metrics: Metrics) -> AsyncIterator[Sequence[Worker]]:
            clock = SystemClock()
            async with AsyncExitStack() as opened:
                if settings.curator_reconciles:
                    reconciler = _reconciler(settings, broker, store, clock)
                    add_reconciler_metrics(metrics, reconciler.sent_again)
                    await opened.enter_async_context(reconciling(reconciler))
                yield curator_workers(broker, store, clock, settings, observer=observer)

        # The reconciler sends messages to every queue.
        own = (CURATOR_RESPONSE_SCORED, CURATOR_RUN_FAILED)
        queues = WORK_QUEUES if settings.curator_reconciles else own
        await host_workers(settings, broker, store, workers, stop, queues=queues)


def _reconciler(
    settings: CuratorProcessSettings, broker: Broker, store: Store, clock: Clock
) -> Reconciler:
    days = settings.curator_delete_after_days
    return Reconciler(
        store,
        broker,
        clock,
        new_owner("curator"),
        quiet=settings.curator_quiet,
        delete_after=None if days is None else timedelta(days=days),
    )
