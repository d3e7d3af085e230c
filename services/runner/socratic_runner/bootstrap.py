"""Where the runner's parts meet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from datetime import timedelta
from functools import partial
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
from socratic_bench.ports.store import Claim, Store, TurnKey
from socratic_runner.budgets import Budgets
from socratic_runner.calls import Calls, Lease, Leased, Unused
from socratic_runner.clients import OpenClient, TutorPool
from socratic_runner.experiments import Experiments
from socratic_runner.handlers import RunCarrier
from socratic_runner.limits.account import AccountShares
from socratic_runner.limits.retries import Retries
from socratic_runner.limits.scopes import Gates
from socratic_runner.recording import PatientRecord
from socratic_runner.settings import RunnerSettings
from socratic_runner.turn_taking import TurnTaking

Item = TypeVar("Item")
Result = TypeVar("Result")

GROUPED_WRITES = 500
"""How many requests, of one lease or response or of a batch of them, a transaction serves."""

PAUSE = 0.02
"""Seconds from one transaction to the next, unless it was large: nothing beside a call to a model;
with 100 calls of 200 ms under way it saves a quarter of the processor time."""

LARGE = 50
"""How many leases or responses make a transaction large."""


@asynccontextmanager
async def runner_worker(
    broker: Broker,
    store: Store,
    clock: Clock,
    open_client: OpenClient,
    settings: RunnerSettings,
    *,
    owner: str,
    alone: bool = False,
    observer: Observer | None = None,
) -> AsyncIterator[Worker]:
    """The worker that carries out runs, with the model clients it opens.

    `owner` names this runner in leases: one that starts again under the same name goes on with
    its own leases at once, so no two may share a name at the same time. One that is `alone` has the
    limits of its models to itself; the others share them through the store.
    """
    gates = Gates(most=settings.runner_in_flight_per_model)
    tutors = TutorPool(open_client, gates)
    record = PatientRecord(store, RetryPolicy())
    draining = asyncio.Event()

    def drain() -> None:
        draining.set()
        gates.close()

    try:
        async with (
            _shared(store, owner, clock, gates, alone=alone),
            _grouped(partial(take_leases, store, owner)) as leases,
            _grouped(partial(give_back_leases, store, owner)) as unused,
            _grouped(partial(_release, store, owner)) as failed,
            _grouped(record) as responses,
        ):
            margin = timedelta(seconds=settings.runner_lease_margin)
            calls = Calls(leases, unused, failed, Budgets(store, clock), clock, margin, draining)
            turn_taking = TurnTaking(calls, responses, clock, _new_retries(settings), draining)
            carrier = RunCarrier(
                store,
                Experiments(store),
                tutors,
                turn_taking,
                clock,
                busy_delay=settings.runner_busy_delay,
            )
            try:
                yield Worker(
                    broker,
                    RUNNER_RUN_REQUESTED,
                    Dispatcher(carrier, RunRequested),
                    Intake(
                        batch=settings.runner_in_flight_per_model,
                        batches=settings.runner_in_flight,
                        prefetch=settings.runner_in_flight,
                        prefetch_per_group=settings.runner_in_flight_per_model,
                    ),
                    on_drain=drain,
                    observer=observer,
                )
            finally:
                record.give_up()
    finally:
        await tutors.close()


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


def _grouped(
    execute: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]],
) -> GroupCommit[Sequence[Item], Sequence[Result]]:
    """One transaction for all who ask at about the same time."""
    return GroupCommit(
        joined(execute), max_batch=GROUPED_WRITES, pause=PAUSE, enough=LARGE, weigh=len
    )


def _shared(
    store: Store, owner: str, clock: Clock, gates: Gates, *, alone: bool
) -> AbstractAsyncContextManager[object]:
    """Shares the limits of accounts with other runners, where there may be any."""
    return nullcontext() if alone else AccountShares(store.share, owner, clock, gates)


async def take_leases(store: Store, owner: str, leases: Sequence[Lease]) -> Sequence[Leased]:
    """Take leases of any experiments for `owner`."""
    now = min(lease.now for lease in leases)
    until = max(lease.until for lease in leases)
    answers: dict[TurnKey, Leased] = {}
    for experiment_id, wanted in _by_experiment(leases).items():
        claims = [Claim(lease.turn, lease.reserve) for lease in wanted]
        taken = await store.lease(experiment_id, claims, owner, now, until)
        answers |= dict.fromkeys(taken.granted, Leased.GRANTED)
        answers |= dict.fromkeys(taken.over_budget, Leased.OVER_BUDGET)
    return [answers.get(lease.turn, Leased.HELD) for lease in leases]


async def give_back_leases(store: Store, owner: str, leases: Sequence[Lease]) -> Sequence[None]:
    """End leases under which no call was made."""
    for experiment_id, unused in _by_experiment(leases).items():
        await store.give_back(experiment_id, [lease.turn for lease in unused], owner)
    return [None for _ in leases]


async def _release(store: Store, owner: str, reservations: Sequence[Unused]) -> Sequence[None]:
    """End the reservations of failed calls."""
    for experiment_id, ended in _by_experiment(reservations).items():
        for paid in (False, True):
            turns = [each.turn for each in ended if each.paid is paid]
            if turns:
                await store.release(experiment_id, turns, owner, paid=paid)
    return [None for _ in reservations]


OfExperiment = TypeVar("OfExperiment", Lease, Unused)


def _by_experiment(items: Sequence[OfExperiment]) -> dict[str, list[OfExperiment]]:
    grouped: dict[str, list[OfExperiment]] = {}
    for item in items:
        grouped.setdefault(item.experiment_id, []).append(item)
    return grouped


def joined(
    execute: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]],
) -> Callable[[Sequence[Sequence[Item]]], Awaitable[Sequence[Sequence[Result]]]]:
    """`execute` for several requests at once, of several items each."""

    async def execute_all(requests: Sequence[Sequence[Item]]) -> Sequence[Sequence[Result]]:
        results = iter(await execute([item for request in requests for item in request]))
        return [list(islice(results, len(request))) for request in requests]

    return execute_all
