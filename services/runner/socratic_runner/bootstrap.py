"""Where the runner's parts meet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import islice
from typing import TypeVar

from socratic_bench.consuming.dispatch import Dispatcher
from socratic_bench.consuming.group_commit import GroupCommit
from socratic_bench.consuming.observing import Observer
from socratic_bench.consuming.queues import RUNNER_RUN_REQUESTED
from socratic_bench.consuming.retry_policy import RetryPolicy
from socratic_bench.consuming.worker import Intake, Worker
from socratic_bench.events.run_requested import RunRequested
from socratic_bench.ports.broker import Broker
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.store import Store, TurnKey
from socratic_runner.clients import OpenClient, TutorPool
from socratic_runner.conversation import Conversations, Lease
from socratic_runner.handlers import RunCarrier
from socratic_runner.recording import PatientRecord
from socratic_runner.settings import RunnerSettings

Item = TypeVar("Item")
Result = TypeVar("Result")

GROUPED_WRITES = 500
"""How many requests, of one lease or response or of a batch of them, a transaction serves."""


@asynccontextmanager
async def runner_worker(
    broker: Broker,
    store: Store,
    clock: Clock,
    open_client: OpenClient,
    settings: RunnerSettings,
    *,
    owner: str,
    observer: Observer | None = None,
) -> AsyncIterator[Worker]:
    """The worker that carries out runs, with the model clients it opens.

    `owner` names this runner in leases: one that starts again under the same name goes on with
    its own leases at once, so no two may share a name at the same time.
    """

    async def take_leases(leases: Sequence[Lease]) -> Sequence[bool]:
        now = min(lease.now for lease in leases)
        until = max(lease.until for lease in leases)
        granted: set[TurnKey] = set()
        for experiment_id in {lease.experiment_id for lease in leases}:
            wanted = {lease.key for lease in leases if lease.experiment_id == experiment_id}
            granted |= await store.lease(experiment_id, wanted, owner, now, until)
        return [lease.key in granted for lease in leases]

    tutors = TutorPool(open_client)
    record = PatientRecord(store, RetryPolicy())
    try:
        async with (
            GroupCommit(joined(take_leases), max_batch=GROUPED_WRITES) as leases,
            GroupCommit(joined(record), max_batch=GROUPED_WRITES) as responses,
        ):
            draining = asyncio.Event()
            conversations = Conversations(
                lease=leases,
                record=responses,
                clock=clock,
                retry_policy=RetryPolicy(
                    attempts=settings.runner_attempts,
                    first_delay=settings.runner_first_delay,
                    longest_delay=settings.runner_longest_delay,
                ),
                lease_margin=timedelta(seconds=settings.runner_lease_margin),
                draining=draining,
            )
            carrier = RunCarrier(
                store, tutors, conversations, clock, busy_delay=settings.runner_busy_delay
            )
            try:
                yield Worker(
                    broker,
                    RUNNER_RUN_REQUESTED,
                    Dispatcher(carrier, RunRequested, broker.publish),
                    Intake(
                        batch=settings.runner_in_flight_per_model,
                        batches=settings.runner_in_flight,
                        prefetch=settings.runner_in_flight,
                        prefetch_per_group=settings.runner_in_flight_per_model,
                    ),
                    on_drain=draining.set,
                    observer=observer,
                )
            finally:
                record.give_up()
    finally:
        await tutors.close()


def joined(
    execute: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]],
) -> Callable[[Sequence[Sequence[Item]]], Awaitable[Sequence[Sequence[Result]]]]:
    """`execute` for several requests at once, of several items each."""

    async def execute_all(requests: Sequence[Sequence[Item]]) -> Sequence[Sequence[Result]]:
        results = iter(await execute([item for request in requests for item in request]))
        return [list(islice(results, len(request))) for request in requests]

    return execute_all
