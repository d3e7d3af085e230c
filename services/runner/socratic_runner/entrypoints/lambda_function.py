"""The runner as a function: `handler` gets batches of requested runs from SQS."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from socratic_bench.adapters.clock import SystemClock
from socratic_bench.adapters.stores.dynamodb.store import DynamoDBStore
from socratic_bench.consuming.queues import (
    CURATOR_RUN_FAILED,
    JUDGE_RESPONSE_RECORDED,
    RUNNER_RUN_REQUESTED,
)
from socratic_bench.consuming.worker import Intake, Worker
from socratic_bench.hosting.functions.queue_function import (
    DRAIN_SECONDS,
    QueueFunction,
    QueueWork,
)
from socratic_bench.hosting.functions.starting import (
    function_broker,
    function_store,
    metrics_of,
    start,
)
from socratic_bench.hosting.starting import new_owner
from socratic_bench.ports.stores.store import Store
from socratic_runner.bootstrap import runner_dispatcher, unwatched
from socratic_runner.conversations.call_preparation import CallWindow
from socratic_runner.entrypoints.endpoint_secrets import SecretEndpoints
from socratic_runner.metrics.function_calls import FunctionCallMetrics
from socratic_runner.settings import RunnerFunctionSettings
from socratic_runner.troubles import Troubles, tell_the_log

MORE: Final = Intake(
    batch=RUNNER_RUN_REQUESTED.batch, batches=20, prefetch=250, prefetch_per_group=50
)
"""What an invocation takes besides its own message while that waits for a slow model."""


@asynccontextmanager
async def _opened() -> AsyncIterator[Mapping[str, QueueWork]]:
    settings = start("runner", RunnerFunctionSettings)
    queues = (RUNNER_RUN_REQUESTED, JUDGE_RESPONSE_RECORDED, CURATOR_RUN_FAILED)
    endpoints = SecretEndpoints(settings)
    async with (
        function_broker(settings.broker_url, queues) as broker,
        function_store(settings.store_url, DynamoDBStore.from_url) as store,
    ):
        metrics = metrics_of("runner", settings)
        calls = FunctionCallMetrics(metrics, partial(_refused_writes, store))
        async with runner_dispatcher(
            broker.publish,
            store,
            SystemClock(),
            endpoints.open_client,
            settings,
            owner=new_owner("function"),
            limits=store,
            observer=calls,
            troubles=Troubles(calls, tell_the_log),
            watch=unwatched,
            window=CallWindow(
                left=lambda: handler.time_left() - DRAIN_SECONDS,
                whole=handler.time_left() - DRAIN_SECONDS,
                longest_pause=settings.runner_longest_pause,
            ),
        ) as dispatcher:
            work = QueueWork(
                partial(broker.records, RUNNER_RUN_REQUESTED.name),
                dispatcher,
                on_end=calls.write,
                more=partial(Worker, broker, RUNNER_RUN_REQUESTED, dispatcher, MORE),
            )
            yield {RUNNER_RUN_REQUESTED.name: work}


def _refused_writes(store: Store) -> int:
    return store.refused_writes if isinstance(store, DynamoDBStore) else 0


handler = QueueFunction("runner", _opened)
