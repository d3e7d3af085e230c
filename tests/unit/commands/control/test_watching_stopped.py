"""`socratic-bench watch`, while another command pauses, cancels or deletes the experiment."""

import asyncio
from datetime import UTC, datetime

import pytest

from socratic_bench.adapters.clock import SystemClock
from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_cli.commands import watch as watching
from socratic_cli.commands.watch import follow
from tests.contract.store.facts import a_score, an_experiment
from tests.waiting import until, waiting_for

EXPERIMENT = an_experiment(created_at=datetime.now(UTC))
ID = EXPERIMENT.experiment_id
PAUSED, RESUMED = ExperimentState.PAUSED, ExperimentState.RESUMED
CANCELLED, DELETED = ExperimentState.CANCELLED, ExperimentState.DELETED


@pytest.fixture
async def store(monkeypatch):
    monkeypatch.setattr(watching, "SHORTEST_PAUSE", 0.01)
    monkeypatch.setattr(watching, "LONGEST_PAUSE", 0.02)
    store = MemoryStore()
    await store.register(EXPERIMENT)
    yield store
    await store.close()


def following(store):
    async def look_on(_progress):
        pass

    return asyncio.create_task(
        follow(EXPERIMENT, store, SystemClock(), heard=asyncio.Event(), on_progress=look_on)
    )


@pytest.mark.parametrize("state", [CANCELLED, DELETED])
async def test_watching_ends_with_what_is_cancelled_or_deleted(store, state):
    watched = following(store)
    await store.change_state(ID, state)
    async with waiting_for("the end of watching"):
        experiment, complete = await watched
    assert (experiment.experiment_id, experiment.state, complete) == (ID, state, False)


async def test_watching_says_that_an_experiment_is_paused_and_goes_on(store, capsys):
    watched = following(store)
    told = ""

    async def said():
        nonlocal told
        told += capsys.readouterr().err
        return told

    await store.change_state(ID, PAUSED)
    await until(said, lambda text: f"{ID} is paused.\n" in text, "a word about the pause")
    assert not watched.done()
    await store.change_state(ID, RESUMED)
    await until(said, lambda text: f"{ID} goes on.\n" in text, "a word about the end of it")
    await store.fold([a_score(run) for run in EXPERIMENT.runs()], [])
    await store.complete(ID, EXPERIMENT.created_at)
    async with waiting_for("the end of watching"):
        assert (await watched)[1]
    assert (await said()).count("is paused") == 1


def test_the_command_ends_with_1_and_says_why(prompt):
    async def fill(store):
        await store.register(EXPERIMENT)
        await store.change_state(ID, CANCELLED)

    prompt.seed(fill)
    watched = prompt.run("watch", ID)
    assert watched.code == 1
    assert f"experiment {ID} is cancelled: `socratic-bench resume {ID}`" in watched.err
    assert "cancelled" in watched.out
