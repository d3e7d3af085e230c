"""The scheduler as a function.

`handler` plans the experiment of each week, and looks for lost work each minute.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final, NamedTuple

from socratic_bench.adapters.clock import SystemClock
from socratic_bench.adapters.stores.dynamodb.store import DynamoDBStore
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.hosting.functions.environment import Environment, LambdaContext, LambdaEvent
from socratic_bench.hosting.functions.starting import (
    function_broker,
    function_store,
    metrics_of,
    start,
)
from socratic_bench.hosting.starting import new_owner
from socratic_bench.ports.broker import Broker
from socratic_bench.ports.stores.store import Store
from socratic_curator.reconciling.reconciler import Reconciler
from socratic_curator.settings import SchedulerSettings

RESERVED_SECONDS: Final = 120.0
"""Seconds of an invocation in which the reconciler begins no further pass: the next one would be
cut off in the middle, and the schedule invokes the function each minute anyway."""


class _Scheduler(NamedTuple):
    settings: SchedulerSettings
    broker: Broker
    store: Store
    reconciler: Reconciler


@asynccontextmanager
async def _scheduler() -> AsyncIterator[_Scheduler]:
    settings = start("scheduler", SchedulerSettings)
    days = settings.curator_delete_after_days
    async with (
        function_broker(settings.broker_url, WORK_QUEUES, BROADCASTS) as broker,
        function_store(settings.store_url, DynamoDBStore.from_url) as store,
    ):
        reconciler = Reconciler(
            store,
            broker,
            SystemClock(),
            new_owner("scheduler"),
            quiet=settings.curator_quiet,
            delete_after=None if days is None else timedelta(days=days),
            # What a reconciler saw a minute ago counts: its own clock stands still while frozen.
            monotonic=time.time,
        )
        yield _Scheduler(settings, broker, store, reconciler)


_environment = Environment(_scheduler)


def handler(event: LambdaEvent, context: LambdaContext) -> dict[str, Any]:
    """Do the task of a schedule: `{"task": "plan"}` or `{"task": "reconcile"}`."""
    tasks = {"plan": _plan, "reconcile": _reconcile}
    return _environment.run(context, tasks[event["task"]])


async def _plan(scheduler: _Scheduler) -> dict[str, Any]:
    # Once a week; what reads a configuration would delay the first look for lost work.
    from socratic_curator.weekly_plan import plan_week  # noqa: PLC0415

    clock = SystemClock()
    experiment, counts = await plan_week(
        scheduler.settings.config_object, scheduler.store, scheduler.broker, clock
    )
    return {
        "experiment": experiment.experiment_id,
        "planned": counts.planned,
        "requested": counts.requested,
    }


async def _reconcile(scheduler: _Scheduler) -> dict[str, Any]:
    before = scheduler.reconciler.sent_again.copy()
    while await scheduler.reconciler.reconcile() and _environment.time_left() > RESERVED_SECONDS:
        pass
    sent = scheduler.reconciler.sent_again - before
    by_kind = {str(what): runs for what, runs in sent.items()}
    metrics_of("scheduler", scheduler.settings).write({"SentAgain": sent.total()}, **by_kind)
    return by_kind
