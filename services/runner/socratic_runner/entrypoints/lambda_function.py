"""The runner as a function: `handler` gets batches of requested runs from SQS."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial

from socratic_bench.adapters.system.clock import SystemClock
from socratic_bench.consuming.queues import (
    CURATOR_RUN_FAILED,
    JUDGE_RESPONSE_RECORDED,
    RUNNER_RUN_REQUESTED,
)
from socratic_bench.errors import FailureKind
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
from socratic_bench.providers.endpoints.endpoint import Endpoints
from socratic_runner.bootstrap import runner_dispatcher
from socratic_runner.call_window import CallWindow
from socratic_runner.conversations.call_observing import UnobservedCalls
from socratic_runner.entrypoints.endpoint_secrets import all_endpoints
from socratic_runner.models.registry import open_client
from socratic_runner.settings import RunnerFunctionSettings
from socratic_runner.troubles import Troubles, tell_the_log


class _RefusedKeys(UnobservedCalls):
    """Has the keys read again once a provider refused one: somebody may have changed it."""

    def failed(self, model_id: str, seconds: float, kind: str) -> None:
        if kind == FailureKind.AUTH:
            handler.reopen_after_this()


@asynccontextmanager
async def _opened() -> AsyncIterator[Mapping[str, QueueWork]]:
    settings = start("runner", RunnerFunctionSettings)
    queues = (RUNNER_RUN_REQUESTED, JUDGE_RESPONSE_RECORDED, CURATOR_RUN_FAILED)
    endpoints = Endpoints(await all_endpoints(settings))
    calls = _RefusedKeys()
    async with (
        function_broker(settings.broker_url, queues) as broker,
        function_store(settings.store_url) as store,
        runner_dispatcher(
            broker.publish,
            store,
            SystemClock(),
            partial(open_client, endpoints=endpoints),
            settings,
            owner=new_owner("function"),
            limits=store,
            observer=calls,
            troubles=Troubles(calls, tell_the_log),
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
