"""How a function begins: its settings, its log, its broker and its store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, TypeVar

from pydantic import SecretStr

from socratic_bench.adapters.brokers.sqs.broker import SqsBroker
from socratic_bench.consuming.dispatch import BatchDispatcher
from socratic_bench.hosting.functions.embedded_metrics import EmbeddedMetrics
from socratic_bench.hosting.functions.queue_function import QueueWork
from socratic_bench.hosting.logs import configure_logs
from socratic_bench.hosting.starting import opened_store, reach
from socratic_bench.ports.broker import WorkQueue
from socratic_bench.ports.stores.store import Store
from socratic_bench.service_settings import FunctionSettings, load_settings

REACH_SECONDS: Final = 10.0
"""Seconds that broker and store may take to answer for the first time: the batch comes back."""

POLL_SECONDS: Final = 1
"""Seconds of a poll: a function is frozen once it has answered, with what a poll brings by then, so
it waits for its last one (D-425)."""

S = TypeVar("S", bound=FunctionSettings)


def start(name: str, settings_type: type[S]) -> S:
    """Read the settings, and begin the log. Raises InvalidSettings."""
    settings = load_settings(settings_type)
    configure_logs(settings.log_level, f"socratic_{name}")
    return settings


def metrics_of(name: str, settings: FunctionSettings) -> EmbeddedMetrics:
    """Return the metrics of a function."""
    return EmbeddedMetrics(name, settings.stage)


@asynccontextmanager
async def function_broker(
    address: SecretStr, queues: Iterable[WorkQueue], broadcasts: Iterable[str] = ()
) -> AsyncIterator[SqsBroker]:
    """Yield the broker, with these queues declared: a function knows no others.

    Raises InvalidSettings and CannotStart.
    """
    broker = SqsBroker(address.get_secret_value(), poll_seconds=POLL_SECONDS)
    try:
        await reach("broker", partial(broker.declare, queues, broadcasts), REACH_SECONDS)
        yield broker
    finally:
        await broker.close()


@asynccontextmanager
async def function_store(address: SecretStr, open_: Callable[[str], Store]) -> AsyncIterator[Store]:
    """Yield the store, prepared. Raises InvalidSettings and CannotStart.

    `open_` is the adapter's own: a function imports it before its first event, while Lambda gives
    it a whole processor (D-382). The judge has no store, and imports none.
    """
    async with opened_store(address, open_) as store:
        await reach("store", store.prepare, REACH_SECONDS)
        yield store


def work_on(
    broker: SqsBroker, dispatchers: Mapping[WorkQueue, BatchDispatcher]
) -> Mapping[str, QueueWork]:
    """Return the work on each queue: the broker takes its records, a dispatcher handles them."""
    return {
        queue.name: QueueWork(partial(broker.records, queue.name), dispatcher)
        for queue, dispatcher in dispatchers.items()
    }
