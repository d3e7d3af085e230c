"""The judge and the curator of a process end with nothing left in their queues."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from socratic_bench.adapters.clock import SystemClock
from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.errors import StoreUnavailable
from socratic_bench.events.codec import to_message
from socratic_bench.events.event_types import ResponseRecorded
from socratic_bench.ports.broker import Broker
from socratic_cli import scoring_workers
from socratic_cli.scoring_workers import scoring_broker
from tests.contract.store.facts import a_response, an_experiment, record_unleased
from tests.waiting import waiting_for


@pytest.fixture
async def store() -> AsyncIterator[MemoryStore]:
    store = MemoryStore()
    yield store
    await store.close()


async def publish_responses(store: MemoryStore, broker: Broker) -> Experiment:
    experiment = await store.register(an_experiment())
    responses = [a_response(run) for run in experiment.runs()]
    await record_unleased(store, responses)
    events = [ResponseRecorded.of(response, source="test") for response in responses]
    await broker.publish([to_message(event) for event in events])
    return experiment


async def test_what_was_published_is_folded_when_the_context_ends(store: MemoryStore) -> None:
    async with waiting_for("the workers"), scoring_broker(store, SystemClock()) as broker:
        experiment = await publish_responses(store, broker)
    progress = await store.progress(experiment.experiment_id)
    assert progress.done == progress.planned > 0


async def test_workers_that_wait_for_the_store_end_without_it_before_any_deadline(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = asyncio.Event()

    async def unavailable(*_: object, **_options: object) -> None:
        refused.set()
        raise StoreUnavailable("the store is down; look whether it runs")

    monkeypatch.setattr(store, "fold", unavailable)
    monkeypatch.setattr(scoring_workers, "DRAIN_DEADLINE", 3_600.0)
    async with waiting_for("the workers"), scoring_broker(store, SystemClock()) as broker:
        experiment = await publish_responses(store, broker)
        await refused.wait()
    assert (await store.progress(experiment.experiment_id)).done == 0
