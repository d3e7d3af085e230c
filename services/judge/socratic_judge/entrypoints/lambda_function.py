"""The judge as a function: `handler` gets batches of recorded responses from SQS."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from socratic_bench.adapters.clock import SystemClock
from socratic_bench.consuming.queues import CURATOR_RESPONSE_SCORED, JUDGE_RESPONSE_RECORDED
from socratic_bench.hosting.functions.queue_function import QueueFunction, QueueWork
from socratic_bench.hosting.functions.starting import function_broker, start, work_on
from socratic_judge.bootstrap import judge_dispatcher
from socratic_judge.settings import JudgeFunctionSettings


@asynccontextmanager
async def _opened() -> AsyncIterator[Mapping[str, QueueWork]]:
    settings = start("judge", JudgeFunctionSettings)
    queues = (JUDGE_RESPONSE_RECORDED, CURATOR_RESPONSE_SCORED)
    async with function_broker(settings.broker_url, queues) as broker:
        yield work_on(
            broker, {JUDGE_RESPONSE_RECORDED: judge_dispatcher(broker.publish, SystemClock())}
        )


handler = QueueFunction("judge", _opened)
