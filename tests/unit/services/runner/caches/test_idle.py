"""A runner drops experiments that no request names any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.ports.models import Reply
from socratic_runner import last_uses
from socratic_runner.conversations.call_preparation import Budgets
from socratic_runner.experiment_cache import ExperimentCache
from socratic_runner.limits.limiters import ConcurrencyLimiters
from socratic_runner.model_pool import ModelPool
from tests.contract.store.facts import an_experiment
from tests.unit.services.runner.scripted import (
    ScriptedClient,
    outcomes_of,
    parts_of_a_runner,
    reply,
    requested,
)
from tests.waiting import until, waiting_for


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unused things are idle at once, and every batch looks for them."""
    monkeypatch.setattr(last_uses, "IDLE_SECONDS", 0.0)
    monkeypatch.setattr(last_uses, "BETWEEN_LOOKS", 0.0)


@pytest.fixture
async def store() -> AsyncIterator[MemoryStore]:
    store = MemoryStore()
    yield store
    await store.close()


def experiments(count: int) -> list[Experiment]:
    return [an_experiment(occasion=f"week {number}") for number in range(count)]


@pytest.mark.usefixtures("at_once")
async def test_clients_of_hundreds_of_experiments_are_closed_again():
    opened: list[ScriptedClient] = []

    def open_client(_model) -> ScriptedClient:
        opened.append(ScriptedClient(None))
        return opened[-1]

    pool = ModelPool(open_client, ConcurrencyLimiters(most=1))
    for experiment in experiments(200):
        pool.close_idle(set)
        for model in experiment.manifest.models:
            pool.model(experiment, model.id)

    async def left() -> int:
        return sum(not client.closed for client in opened)

    await until(left, lambda clients: clients <= 2, "the end of idle clients")
    await pool.close()
    assert len(opened) == 400
    assert all(client.closed for client in opened)


@pytest.mark.usefixtures("at_once")
async def test_a_client_in_use_stays_however_long_its_call_takes(store: MemoryStore):
    experiment = await store.register(an_experiment(models=1))
    first, second, *_ = experiment.runs()
    asked, answer = asyncio.Event(), asyncio.Event()

    async def slow() -> Reply:
        asked.set()
        await answer.wait()
        return reply()

    client = ScriptedClient(lambda *_: slow())
    async with parts_of_a_runner(store, client) as parts, waiting_for("a slow reply"):
        unknown = requested(second.model_copy(update={"experiment_id": "exp-unknown"}))
        carrying_out = asyncio.create_task(outcomes_of(parts.handler, requested(first)))
        await asked.wait()
        for _ in range(3):  # with every batch comes a look for what is idle
            await outcomes_of(parts.handler, unknown)
        assert not client.closed
        answer.set()
        await carrying_out
        for _ in range(2):
            await outcomes_of(parts.handler, unknown)

        async def is_closed() -> bool:
            return client.closed

        await until(is_closed, bool, "the end of an idle client")


@pytest.mark.usefixtures("at_once")
async def test_experiments_and_budgets_are_forgotten(store):
    known, budgets = ExperimentCache(store), Budgets(store)
    for experiment in experiments(50):
        await store.register(experiment)
        named = await known.named({experiment.experiment_id: set()})
        assert named == {experiment.experiment_id: experiment}
        known.forget_idle(set)
        await budgets.room_may_come(experiment.experiment_id, 1)
    known.forget_idle(set)
    assert not known._known
    assert len(budgets._experiments) == 1


async def test_what_was_used_a_moment_ago_is_kept(store):
    known = ExperimentCache(store)
    for experiment in experiments(5):
        await store.register(experiment)
        await known.named({experiment.experiment_id: set()})
        known.forget_idle(set)
    assert len(known._known) == 5
