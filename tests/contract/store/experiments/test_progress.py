"""An experiment has a progress, and is complete once every run is done."""

from __future__ import annotations

import asyncio

import pytest

from socratic_bench.errors import StoreError
from socratic_bench.ports.stores.experiments import Progress
from socratic_bench.ports.stores.store import Store
from tests.contract.store.experiments.experiments import ended
from tests.contract.store.facts import (
    MINUTE,
    MONDAY,
    a_failure,
    a_response,
    a_score,
    an_experiment,
    an_unscored,
    claim_of,
    record_unleased,
)


async def test_of_many_callers_the_first_completes_an_experiment_and_all_get_its_time(
    store: Store, other_store: Store
) -> None:
    experiment_id = (await ended(store, an_experiment())).experiment_id
    times = await asyncio.gather(
        *(
            (store, other_store)[minute % 2].complete(experiment_id, MONDAY + minute * MINUTE)
            for minute in range(20)
        )
    )
    assert len(set(times)) == 1
    assert await store.complete(experiment_id, MONDAY + 50 * MINUTE) == times[0]
    stored = await store.experiment(experiment_id)
    assert stored is not None
    assert stored.completed_at == times[0]


async def test_an_experiment_that_stops_early_has_planned_what_it_has(
    store: Store, other_store: Store
) -> None:
    experiment = await store.register(an_experiment(repeats=5))
    experiment_id = experiment.experiment_id
    runs = list(experiment.up_to(3).runs())
    await store.fold([a_score(run) for run in runs[:-1]], [])
    assert await store.complete(experiment_id, MONDAY, 3) is None
    await store.fold([a_score(runs[-1])], [])
    assert await store.complete(experiment_id, MONDAY) is None
    assert await store.complete(experiment_id, MONDAY, 2) is None
    assert await store.complete(experiment_id, MONDAY, 3) == MONDAY
    assert await other_store.complete(experiment_id, MONDAY + MINUTE, 4) == MONDAY
    assert await other_store.progress(experiment_id) == Progress(len(runs), len(runs), 0)
    again = await other_store.register(an_experiment(repeats=5))
    assert [run.run_id for run in again.runs()] == [run.run_id for run in runs]
    [outline] = await other_store.outlines()
    assert (outline.repeats, outline.planned_runs) == (3, len(runs))


async def test_an_experiment_that_is_not_there_cannot_be_completed(store: Store) -> None:
    assert await store.complete("exp-unknown", MONDAY) is None


async def test_an_experiment_is_complete_once_every_run_is_done_in_whatever_way(
    store: Store,
) -> None:
    experiment = await store.register(an_experiment())
    failed, last, *runs = experiment.runs()
    await store.fold([a_score(run) for run in runs], [a_failure(failed)])
    assert await store.complete(experiment.experiment_id, MONDAY) is None
    await store.fold([an_unscored(last)], [])
    assert await store.complete(experiment.experiment_id, MONDAY) == MONDAY


@pytest.mark.parametrize("lease_id", ["", "first"])
async def test_an_experiment_with_a_response_to_score_is_not_complete(
    store: Store, lease_id: str
) -> None:
    experiment = await ended(store, an_experiment())
    run, *_ = experiment.runs()
    await store.take_leases([claim_of(run, lease_id, turn=2)], "runner")
    await store.record([a_response(run, turn=2)], [lease_id])
    assert await store.complete(experiment.experiment_id, MONDAY) is None
    await store.fold([a_score(run, turn=2, profile="other-v1")], [])
    assert await store.complete(experiment.experiment_id, MONDAY) is None
    await store.fold([a_score(run, turn=2)], [])
    assert await store.complete(experiment.experiment_id, MONDAY) == MONDAY


async def test_once_complete_an_experiment_stays_so(store: Store) -> None:
    experiment = await ended(store, an_experiment())
    run, *_ = experiment.runs()
    await store.complete(experiment.experiment_id, MONDAY)
    await record_unleased(store, [a_response(run, turn=2)])
    assert await store.complete(experiment.experiment_id, MONDAY + MINUTE) == MONDAY


@pytest.mark.smoke
async def test_progress_counts_the_runs_that_ended_in_whatever_way(store: Store) -> None:
    experiment = await store.register(an_experiment(models=2, scenarios=3, repeats=2))
    assert await store.progress(experiment.experiment_id) == Progress(12, 0, 0)
    scored, unscored, failed, *_ = experiment.runs()
    await store.fold([a_score(scored), an_unscored(unscored)], [a_failure(failed)])
    assert await store.progress(experiment.experiment_id) == Progress(planned=12, done=3, failed=1)


async def test_progress_does_not_count_a_run_before_its_last_turn(store: Store) -> None:
    experiment = await store.register(an_experiment(follow_ups=["And then?"]))
    run, *_ = experiment.runs()
    await store.fold([a_score(run, turn=1, last_turn=False)], [])
    assert (await store.progress(experiment.experiment_id)).done == 0
    await store.fold([a_score(run, turn=2)], [])
    assert (await store.progress(experiment.experiment_id)).done == 1


async def test_progress_leaves_out_other_profiles_and_other_experiments(store: Store) -> None:
    experiment = await store.register(an_experiment())
    other = await store.register(an_experiment(occasion="again"))
    run, failed, *_ = experiment.runs()
    await store.fold([a_score(run, profile="other-v1")], [a_failure(failed, profile="other-v1")])
    await store.fold([a_score(next(iter(other.runs())))], [])
    assert await store.progress(experiment.experiment_id) == Progress(12, 0, 0)


async def test_a_failure_overruled_by_a_response_is_no_failed_run(store: Store) -> None:
    experiment = await store.register(an_experiment())
    before, after, *_ = experiment.runs()
    await store.fold([], [a_failure(before)])
    await store.fold([a_score(before), a_score(after)], [])
    await store.fold([], [a_failure(after)])
    assert await store.progress(experiment.experiment_id) == Progress(12, done=2, failed=0)


async def test_progress_of_an_experiment_that_is_not_there_is_an_error(store: Store) -> None:
    with pytest.raises(StoreError, match="exp-unknown"):
        await store.progress("exp-unknown")


async def test_runs_are_done_that_failed_or_whose_last_turn_has_a_score(store: Store) -> None:
    experiment = await store.register(an_experiment())
    scored, unscored, failed, in_between, untouched, other, *_ = experiment.runs()
    await store.fold(
        [
            a_score(scored),
            an_unscored(unscored),
            a_score(in_between, last_turn=False),
            a_score(other, profile="other-v1"),
        ],
        [a_failure(failed), a_failure(untouched, profile="other-v1")],
    )
    run_ids = [run.run_id for run in experiment.runs()]
    done = await store.done_runs(experiment.experiment_id, run_ids)
    assert done == {scored.run_id, unscored.run_id, failed.run_id}
    assert await store.done_runs(experiment.experiment_id, [failed.run_id]) == {failed.run_id}
    assert await store.done_runs(experiment.experiment_id, []) == set()


async def test_a_run_is_not_done_while_a_stored_response_of_it_has_no_score(store: Store) -> None:
    experiment = await store.register(an_experiment())
    ended, failed, *_ = experiment.runs()
    responses = [a_response(run, turn=1, last_turn=False) for run in (ended, failed)]
    await record_unleased(store, [*responses, a_response(ended, turn=2)])
    await store.fold([a_score(ended, turn=2)], [a_failure(failed, turn=2)])
    run_ids = [ended.run_id, failed.run_id]
    assert await store.done_runs(experiment.experiment_id, run_ids) == set()
    await store.fold([a_score(run, turn=1, last_turn=False) for run in (ended, failed)], [])
    assert await store.done_runs(experiment.experiment_id, run_ids) == set(run_ids)
