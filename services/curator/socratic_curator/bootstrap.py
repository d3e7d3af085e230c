"""Wires the curator's parts together."""

from __future__ import annotations

from typing import NamedTuple

from socratic_bench.consuming.dispatch import BatchDispatcher, Dispatcher
from socratic_bench.consuming.publication import Publish
from socratic_bench.consuming.queues import CURATOR_RESPONSE_SCORED, CURATOR_RUN_FAILED
from socratic_bench.consuming.worker import Intake, Observer, Worker
from socratic_bench.events.event_types import ResponseScored, RunFailed
from socratic_bench.ports.broker import Broker
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.stores.store import Store
from socratic_curator.handlers import FactHandler
from socratic_curator.settings import CuratorSettings

LONGEST_PAUSE = 0.1
"""The most seconds between two folds unless a batch is full. A fold rewrites every touched cell,
whatever the number of its facts: fewer folds are cheaper."""


class CuratorDispatchers(NamedTuple):
    """One dispatcher for each event type that the curator folds."""

    scores: BatchDispatcher
    failures: BatchDispatcher


def curator_dispatchers(publish: Publish, store: Store, clock: Clock) -> CuratorDispatchers:
    """Return the dispatchers that fold facts and announce the changes through `publish`."""
    handler = FactHandler(store, clock)
    return CuratorDispatchers(
        BatchDispatcher(publish, Dispatcher(handler, ResponseScored)),
        BatchDispatcher(publish, Dispatcher(handler, RunFailed)),
    )


def curator_workers(
    broker: Broker,
    store: Store,
    clock: Clock,
    settings: CuratorSettings,
    *,
    observer: Observer | None = None,
) -> tuple[Worker, Worker]:
    """Return the workers that fold scores and failures."""
    batch = settings.curator_batch
    intake = Intake(batch=batch, prefetch=2 * batch, longest_pause=LONGEST_PAUSE)
    scores, failures = curator_dispatchers(broker.publish, store, clock)
    return (
        Worker(broker, CURATOR_RESPONSE_SCORED, scores, intake, observer=observer),
        Worker(broker, CURATOR_RUN_FAILED, failures, intake, observer=observer),
    )
