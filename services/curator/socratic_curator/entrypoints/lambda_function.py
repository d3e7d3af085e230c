"""The curator as a function: `handler` gets batches of scores and of failures from SQS."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from socratic_bench.adapters.clock import SystemClock
from socratic_bench.adapters.stores.dynamodb.store import DynamoDBStore
from socratic_bench.consuming.queues import (
    BROADCASTS,
    CURATOR_RESPONSE_SCORED,
    CURATOR_RUN_FAILED,
)
from socratic_bench.hosting.functions.queue_function import QueueFunction, QueueWork
from socratic_bench.hosting.functions.starting import (
    function_broker,
    function_store,
    start,
    work_on,
)
from socratic_curator.bootstrap import curator_dispatchers
from socratic_curator.settings import CuratorFunctionSettings


@asynccontextmanager
async def _opened() -> AsyncIterator[Mapping[str, QueueWork]]:
    settings = start("curator", CuratorFunctionSettings)
    queues = (CURATOR_RESPONSE_SCORED, CURATOR_RUN_FAILED)
    async with (
        function_broker(settings.broker_url, queues, BROADCASTS) as broker,
        function_store(settings.store_url, DynamoDBStore.from_url) as store,
    ):
        scores, failures = curator_dispatchers(broker.publish, store, SystemClock())
        yield work_on(broker, {CURATOR_RESPONSE_SCORED: scores, CURATOR_RUN_FAILED: failures})


handler = QueueFunction("curator", _opened)
