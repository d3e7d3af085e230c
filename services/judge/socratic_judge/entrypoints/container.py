"""The judge as a process of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from socratic_bench.adapters.clock import SystemClock
from socratic_bench.consuming.queues import CURATOR_RESPONSE_SCORED, JUDGE_RESPONSE_RECORDED
from socratic_bench.consuming.worker import Observer, Worker
from socratic_bench.hosting.metrics import Metrics
from socratic_bench.hosting.process import run_process
from socratic_bench.hosting.starting import opened_broker
from socratic_bench.hosting.workers import host_workers
from socratic_judge.bootstrap import judge_worker
from socratic_judge.settings import JudgeProcessSettings


def main() -> int:
    """Run the judge until a signal stops it; returns the exit code."""
    return run_process("socratic_judge", JudgeProcessSettings, _serve)


async def _serve(settings: JudgeProcessSettings, stop: asyncio.Event) -> None:
    async with opened_broker(settings.broker_url) as broker:

        @asynccontextmanager
        async def workers(observer: Observer, _metrics: Metrics) -> AsyncIterator[Sequence[Worker]]:
            yield [judge_worker(broker, SystemClock(), settings, observer=observer)]

        queues = (JUDGE_RESPONSE_RECORDED, CURATOR_RESPONSE_SCORED)
        await host_workers(settings, broker, None, workers, stop, queues=queues, broadcasts=())
