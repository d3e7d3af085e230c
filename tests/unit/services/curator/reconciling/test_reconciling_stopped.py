"""The reconciler requests a resumed plan at once, leaves the others alone, and expires the old."""

from datetime import timedelta

import pytest

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.consuming.queues import RUNNER_RUN_REQUESTED
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_curator.reconciling import reconciler
from socratic_curator.reconciling.reconciler import Reconciler
from socratic_curator.reconciling.watched import QUIET_SECONDS
from tests.contract.store.facts import MONDAY, a_score, an_experiment
from tests.servers.sqlite import prepared_file
from tests.unit.services.curator.reconciling.test_reconciler import after, taken

EXPERIMENT, OTHER = an_experiment(), an_experiment(occasion="other")
ID = EXPERIMENT.experiment_id
RUNS = list(EXPERIMENT.runs())
OPEN, PAUSED, RESUMED = ExperimentState.OPEN, ExperimentState.PAUSED, ExperimentState.RESUMED
CANCELLED, DELETED = ExperimentState.CANCELLED, ExperimentState.DELETED


async def planned(store):
    for each in (EXPERIMENT, OTHER):
        await store.register(each)
        await store.mark_planned(each.experiment_id, MONDAY)
    return store


@pytest.fixture
async def store():
    store = await planned(MemoryStore())
    yield store
    await store.close()


@pytest.mark.parametrize("state", [PAUSED, CANCELLED, DELETED])
async def test_nothing_of_a_stopped_experiment_is_sent_again(healer, store, broker, clock, state):
    await store.change_state(ID, state)
    await after(healer, clock, QUIET_SECONDS)
    requested = await taken(broker, RUNNER_RUN_REQUESTED)
    assert {each.correlationid for each in requested} == {OTHER.experiment_id}


@pytest.mark.parametrize("state", [PAUSED, CANCELLED])
async def test_what_is_left_of_a_resumed_experiment_is_requested_at_once_and_it_is_open(
    healer, store, broker, clock, state
):
    await store.fold([a_score(run) for run in RUNS[:5]], [])
    await healer.reconcile()
    await store.change_state(ID, state)
    await healer.reconcile()
    await store.change_state(ID, RESUMED)
    await healer.reconcile()
    requested = await taken(broker, RUNNER_RUN_REQUESTED)
    assert sorted(each.subject for each in requested) == sorted(run.run_id for run in RUNS[5:])
    assert await store.states([ID]) == {ID: OPEN}
    assert healer.sent_again == {}
    clock.seconds += QUIET_SECONDS - 1
    await healer.reconcile()
    requested = await taken(broker, RUNNER_RUN_REQUESTED)
    assert ID not in {each.correlationid for each in requested}


async def test_one_that_is_stopped_just_then_keeps_no_other_from_being_healed(
    healer, store, broker, clock
):
    await healer.reconcile()
    await store.change_state(ID, PAUSED)
    await store.change_state(ID, RESUMED)
    running = await store.running()

    async def running_before():
        return sorted(running, key=lambda each: each.experiment_id != ID)

    store.running = running_before
    await store.change_state(ID, CANCELLED)
    clock.seconds += QUIET_SECONDS
    await healer.reconcile()
    requested = await taken(broker, RUNNER_RUN_REQUESTED)
    assert {each.correlationid for each in requested} == {OTHER.experiment_id}
    assert await store.states([ID]) == {ID: CANCELLED}


async def test_a_plan_is_published_as_it_is_stored_by_now(broker, clock):
    store = MemoryStore()
    await store.register(EXPERIMENT)
    healer = Reconciler(store, broker, clock, "curator-1", monotonic=clock)
    await healer.reconcile()
    await store.register(an_experiment(budget=9))
    clock.seconds += QUIET_SECONDS
    await healer.reconcile()
    assert len(await taken(broker, RUNNER_RUN_REQUESTED)) == len(RUNS)
    assert (await store.spending(ID)).budget == 9
    await store.close()


async def completed(store, days_ago):
    """Make the first experiment complete, so long before the clock's time."""
    await store.fold([a_score(run) for run in RUNS], [])
    await store.complete(ID, MONDAY - timedelta(days=days_ago))


async def test_nothing_expires_unless_that_is_wanted(healer, store, clock):
    await completed(store, days_ago=10_000)
    await healer.reconcile()
    assert len(await store.experiments()) == 2


async def test_experiments_that_have_been_complete_for_long_enough_are_deleted(
    store, broker, clock
):
    await completed(store, days_ago=8)
    for days, left in ((9, 2), (7, 1)):
        after_days = timedelta(days=days)
        owner = f"curator-{days}"
        healer = Reconciler(store, broker, clock, owner, delete_after=after_days, monotonic=clock)
        await healer.reconcile()
        await healer.leave()
        assert len(await store.experiments()) == left
    assert await store.cells([ID]) == []
    assert await store.states([ID]) == {ID: DELETED}
    assert await store.deletable(None) == []


async def test_a_deletion_that_was_cut_off_is_finished_some_rows_a_pass(
    tmp_path, broker, clock, monkeypatch
):
    monkeypatch.setattr(reconciler, "MOST_BATCHES", 1)
    # A store in memory deletes everything in one batch.
    store = await planned(SqlStore.from_url(await prepared_file(tmp_path / "benchmark.db")))
    healer = Reconciler(store, broker, clock, "curator-1", monotonic=clock)
    await completed(store, days_ago=0)
    await store.change_state(ID, DELETED)
    passes = 0
    while await store.deletable(None):
        passes += 1
        await healer.reconcile()
    assert passes == 3  # conversations, scores and cells
    assert await store.cells([ID]) == []
    await store.close()
