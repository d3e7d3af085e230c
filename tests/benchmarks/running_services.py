"""Services on RabbitMQ and PostgreSQL for a benchmark, in a namespace and a database of its own."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from socratic_bench.adapters.brokers.rabbitmq.broker import RabbitMQBroker
from socratic_bench.adapters.clock import SystemClock
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.domain.experiment.manifest import Experiment, Manifest, TutorModel
from socratic_bench.events.codec import to_message
from socratic_bench.planning.config_file.scenario_selection import load_pack
from socratic_bench.planning.plan import resume
from tests.e2e.service_processes import ServiceProcess, start
from tests.servers import postgresql, rabbitmq

PATIENCE = 600.0
"""Seconds after which a benchmark has failed."""


def experiment_of(tutors: Sequence[str], runs: int, **options: int) -> Experiment:
    """An experiment of about so many runs."""
    scenarios = load_pack()
    manifest = Manifest(
        models=tuple(TutorModel(id=tutor, options=dict(options)) for tutor in tutors),
        scenarios=scenarios,
        repeats=max(1, runs // (len(tutors) * len(scenarios))),
    )
    return Experiment(manifest=manifest, created_at=SystemClock().now())


@asynccontextmanager
async def services(**processes: int) -> AsyncIterator[tuple[RabbitMQBroker, SqlStore]]:
    """As many processes of each service, ready, and the broker and store they use."""
    async with running(**processes) as (broker, store, _):
        yield broker, store


@asynccontextmanager
async def running(
    **processes: int,
) -> AsyncIterator[tuple[RabbitMQBroker, SqlStore, dict[str, ServiceProcess]]]:
    """The same, with the last process of each service."""
    async with AsyncExitStack() as stack:
        broker_url = await stack.enter_async_context(rabbitmq.namespace())
        store_url = await stack.enter_async_context(postgresql.new_database())
        environment = {"SOCRATIC_BROKER_URL": broker_url, "SOCRATIC_STORE_URL": store_url}
        started: dict[str, ServiceProcess] = {}
        for kind in Counter(processes).elements():
            service = await start(kind, environment)
            stack.push_async_callback(service.close)
            await service.ready()
            started[kind] = service
        broker, store = RabbitMQBroker(broker_url), SqlStore.from_url(store_url)
        stack.push_async_callback(broker.close)
        stack.push_async_callback(store.close)
        await broker.declare(WORK_QUEUES, BROADCASTS)
        yield broker, store, started


async def plan(experiment: Experiment, broker: RabbitMQBroker, store: SqlStore) -> None:
    """Request every run of an experiment."""
    await store.register(experiment)
    await resume(
        experiment,
        experiment.runs(),
        store,
        lambda events: broker.publish([to_message(event) for event in events]),
        clock=SystemClock(),
    )


async def until_done(experiment: Experiment, store: SqlStore) -> None:
    """Wait until every run of an experiment is in its cells."""
    async with asyncio.timeout(PATIENCE):
        while (progress := await store.progress(experiment.experiment_id)).done < progress.planned:  # noqa: ASYNC110 - the store tells no event of it
            await asyncio.sleep(0.05)
