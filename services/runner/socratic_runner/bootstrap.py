"""Wires the runner's parts together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from socratic_bench.concurrency.retry_policy import RetryPolicy
from socratic_bench.consuming.dispatch import BatchDispatcher, Dispatcher
from socratic_bench.consuming.publication import Publish
from socratic_bench.consuming.queues import RUNNER_RUN_REQUESTED
from socratic_bench.consuming.waits import Waits
from socratic_bench.consuming.worker import FindGroups, Intake, Observer, Worker
from socratic_bench.events.event_types import RunRequested
from socratic_bench.ports.broker import Broker
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.stores.limits import SharedLimits
from socratic_bench.ports.stores.store import Store
from socratic_runner.conversations.batching import Batching
from socratic_runner.conversations.call_outcomes import CallObserver, Retries
from socratic_runner.conversations.call_preparation import (
    ALL_TIME,
    Budgets,
    CallPreparer,
    CallWindow,
)
from socratic_runner.conversations.conversation_runner import ConversationRunner
from socratic_runner.conversations.response_grader import EarlierGraders, ResponseGrader
from socratic_runner.experiment_cache import ExperimentCache
from socratic_runner.handling.handler import RunRequestedHandler
from socratic_runner.leases.book import LeaseBook
from socratic_runner.leases.recorder import Recorder
from socratic_runner.limits.breaker import BUSY_SILENCE
from socratic_runner.limits.limiters import ConcurrencyLimiters
from socratic_runner.limits.pausing import BackOff
from socratic_runner.limits.sharing import AccountShares, SharedPauses
from socratic_runner.model_pool import ModelPool, OpenClient
from socratic_runner.settings import RunnerSettings
from socratic_runner.troubles import Troubles

Watch = Callable[[ConcurrencyLimiters, LeaseBook, ModelPool], None]
"""Gets the parts of a runner that have figures for metrics."""

# D-314: without it, no call began before the runner had taken all that it may have in hand.
CATCH_UP_SECONDS: Final = 0.1
"""The most seconds from a full batch of runs to the next one."""


def unwatched(_limiters: ConcurrencyLimiters, _leases: LeaseBook, _pool: ModelPool) -> None:
    """Do nothing: a `Watch` for a runner without metrics."""


@asynccontextmanager
async def runner_dispatcher(
    publish: Publish,
    store: Store,
    clock: Clock,
    open_client: OpenClient,
    settings: RunnerSettings,
    *,
    owner: str,
    limits: SharedLimits,
    observer: CallObserver,
    troubles: Troubles,
    watch: Watch,
    window: CallWindow = ALL_TIME,
) -> AsyncIterator[BatchDispatcher]:
    """Make the dispatcher that carries out runs, with its model clients.

    `owner` names this runner in leases and is unique for this process. Runners with the same
    `limits` share the ceilings and pauses of their models. `observer` hears of every call, and
    `troubles` of every failing model. `watch` receives the limiters, the lease book and the model
    pool at the start. `window` bounds the time of calls; a process needs none.
    """
    back_off = BackOff(settings.runner_first_delay, 2 * settings.runner_longest_delay)
    limiters = ConcurrencyLimiters(
        most=settings.runner_in_flight_per_model,
        clock=asyncio.get_running_loop().time,
        back_off=back_off,
    )
    pool = ModelPool(open_client, limiters, busy_silence=_busy_silence(settings))
    draining, waits = asyncio.Event(), Waits()
    leases, recorder = LeaseBook(store, owner, waits, draining, troubles), Recorder(store, waits)
    watch(limiters, leases, pool)
    margin = settings.runner_lease_margin
    preparer = CallPreparer(leases, store, Budgets(store), margin, draining, window)
    batching = Batching(store, preparer, clock, observer, troubles)
    runner = ConversationRunner(
        preparer,
        leases,
        recorder,
        clock,
        _new_retries(settings),
        draining,
        observer,
        troubles,
        batching,
    )
    handler = RunRequestedHandler(
        store,
        ExperimentCache(store),
        pool,
        runner,
        ResponseGrader(store, EarlierGraders(store, store), pool, runner),
        clock,
        busy_delay=settings.runner_busy_delay,
    )

    def drain() -> None:
        draining.set()
        limiters.close()

    def resume() -> None:
        draining.clear()
        limiters.reopen()

    try:
        async with (
            AccountShares(limits, owner, limiters),
            SharedPauses(limits, limiters),
            leases.open(),
            recorder.open(),
            batching.open(),
        ):
            yield BatchDispatcher(
                publish,
                Dispatcher(handler, RunRequested, waits=waits),
                on_drain=drain,
                on_resume=resume,
                longest=handler.longest,
            )
    finally:
        await pool.close()


def runner_worker(
    broker: Broker,
    dispatcher: BatchDispatcher,
    settings: RunnerSettings,
    *,
    groups: FindGroups | None = None,
    observer: Observer | None = None,
) -> Worker:
    """Make the worker that feeds a runner's dispatcher.

    `groups` lists the groups of requests to consume, for brokers that cannot list them.
    """
    intake = Intake(
        batch=settings.runner_in_flight_per_model,
        batches=settings.runner_in_flight,
        prefetch=settings.runner_in_flight,
        prefetch_per_group=settings.runner_in_flight_per_model,
        catch_up_seconds=CATCH_UP_SECONDS,
    )
    return Worker(
        broker, RUNNER_RUN_REQUESTED, dispatcher, intake, groups=groups, observer=observer
    )


def _new_retries(settings: RunnerSettings) -> Callable[[], Retries]:
    delays = RetryPolicy(
        first_delay=settings.runner_first_delay, longest_delay=settings.runner_longest_delay
    )
    return partial(
        Retries,
        delays,
        attempts=settings.runner_attempts,
        patient_attempts=settings.runner_patient_attempts,
    )


def _busy_silence(settings: RunnerSettings) -> float:
    """Seconds that a run's tries take at a busy provider, at least BUSY_SILENCE."""
    tries = range(settings.runner_patient_attempts - 1)
    first, longest = settings.runner_first_delay, settings.runner_longest_delay
    return max(BUSY_SILENCE, sum(min(longest, first * 2.0 ** min(each, 30)) for each in tries))
