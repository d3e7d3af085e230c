"""The runner as a function: `handler` gets batches of requested runs from SQS."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from socratic_bench.adapters.system.clock import SystemClock
from socratic_bench.consuming.queues import (
    CURATOR_RUN_FAILED,
    JUDGE_RESPONSE_RECORDED,
    RUNNER_RUN_REQUESTED,
)
from socratic_bench.hosting.functions.queue_function import (
    DRAIN_SECONDS,
    QueueFunction,
    QueueWork,
)
from socratic_bench.hosting.functions.starting import (
    function_broker,
    function_store,
    start,
    work_on,
)
from socratic_bench.hosting.owners import new_owner
from socratic_runner.bootstrap import runner_dispatcher
from socratic_runner.call_window import CallWindow
from socratic_runner.conversations.call_observing import UNOBSERVED
from socratic_runner.entrypoints.endpoint_secrets import SecretEndpoints
from socratic_runner.settings import RunnerFunctionSettings
from socratic_runner.troubles import Troubles, tell_the_log


@asynccontextmanager
async def _opened() -> AsyncIterator[Mapping[str, QueueWork]]:
    settings = start("runner", RunnerFunctionSettings)
    queues = (RUNNER_RUN_REQUESTED, JUDGE_RESPONSE_RECORDED, CURATOR_RUN_FAILED)
    endpoints = SecretEndpoints(settings)
    async with (
        function_broker(settings.broker_url, queues) as broker,
        function_store(settings.store_url) as store,
        runner_dispatcher(
            broker.publish,
            store,
            SystemClock(),
            endpoints.open_client,
            settings,
            owner=new_owner("function"),
            limits=store,
            observer=UNOBSERVED,
            troubles=Troubles(UNOBSERVED, tell_the_log),
            watch=lambda *_: None,
            window=CallWindow(
                left=lambda: handler.time_left() - DRAIN_SECONDS,
                whole=handler.time_left() - DRAIN_SECONDS,
                longest_pause=settings.runner_longest_pause,
            ),
        ) as dispatcher,
    ):
        yield work_on(broker, {RUNNER_RUN_REQUESTED: dispatcher})


handler = QueueFunction("runner", _opened)
