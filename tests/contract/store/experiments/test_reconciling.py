"""The store knows an experiment's gaps: running, unscored, unfolded and missing runs."""

from __future__ import annotations

import pytest

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.run import RunFailure
from socratic_bench.ports.stores.experiments import RunningExperiment
from socratic_bench.ports.stores.responses import RecordedFailure
from socratic_bench.ports.stores.store import Store
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

MODELS = frozenset({"reference/tutor-0", "reference/tutor-1"})


@pytest.fixture
async def experiment(store: Store) -> Experiment:
    return await store.register(an_experiment())


async def test_experiments_are_running_until_they_are_complete_newest_first(store: Store) -> None:
    older = await store.register(an_experiment(models=1, occasion="older", budget=0))
    newer = await store.register(an_experiment(created_at=MONDAY + MINUTE))
    done = await store.register(an_experiment(occasion="done"))
    await store.fold([a_score(run) for run in done.runs()], [])
    await store.complete(done.experiment_id, MONDAY)
    await store.mark_planned(newer.experiment_id, MONDAY + 2 * MINUTE)
    await store.exhaust(older.experiment_id, 1)
    assert list(await store.running()) == [
        RunningExperiment(
            newer.experiment_id, MONDAY + MINUTE, MONDAY + 2 * MINUTE, MODELS, exhausted=False
        ),
        RunningExperiment(
            older.experiment_id, MONDAY, None, frozenset({"reference/tutor-0"}), exhausted=True
        ),
    ]


async def test_running_experiments_are_found_however_often_they_are_asked_for(
    store: Store, experiment: Experiment
) -> None:
    other = await store.register(an_experiment(models=1, occasion="other"))
    known = {each.experiment_id: each.groups for each in await store.running()}
    await store.register(an_experiment(models=1, occasion="later"))
    await store.complete(other.experiment_id, MONDAY)
    again = {each.experiment_id: each.groups for each in await store.running()}
    assert known.items() <= again.items()
    assert len(again) == 3


async def test_a_priority_is_raised_and_never_lowered_and_requests_of_both_are_found(
    store: Store, other_store: Store
) -> None:
    plan, raised = an_experiment(models=1), an_experiment(models=1, priority="high")
    for store_of_a_process in (store, other_store):
        await store_of_a_process.register(plan)
        [running] = await store_of_a_process.running()
        assert running.groups == {"reference/tutor-0"}
    for given in (raised, plan):
        registered = await other_store.register(given)
        assert registered.manifest.priority == "high"
        assert (registered.experiment_id, registered.created_at) == (plan.experiment_id, MONDAY)
        [running] = await store.running()
        assert running.groups == {"reference/tutor-0", "high:reference/tutor-0"}


async def test_the_first_time_at_which_all_was_planned_stays(
    store: Store, experiment: Experiment
) -> None:
    for minute in (1, 2):
        await store.mark_planned(experiment.experiment_id, MONDAY + minute * MINUTE)
        await store.register(experiment)
    await store.mark_planned("exp-unknown", MONDAY)
    [running] = await store.running()
    assert running.planned_at == MONDAY + MINUTE


async def test_what_experiments_ask_is_found_by_its_content_the_newest_first(
    store: Store, experiment: Experiment
) -> None:
    more = await store.register(an_experiment(repeats=3, created_at=MONDAY + MINUTE))
    await store.register(an_experiment(occasion="another", created_at=MONDAY + MINUTE))
    keys = [*more.conversation_keys.values(), "conv-of-nobody"]
    ids = [more.experiment_id, experiment.experiment_id]
    assert await store.asked_in(keys, 2) == dict.fromkeys(keys[:-1], ids)
    assert await store.asked_in(keys[:1], 1) == {keys[0]: ids[:1]}
    await store.register(experiment)
    assert await store.asked_in(keys[:1], 9) == {keys[0]: ids}


async def test_an_adopted_response_costs_its_experiment_nothing_and_is_no_call(
    store: Store, experiment: Experiment
) -> None:
    run, other, *_ = experiment.runs()
    adopted = a_response(run).model_copy(update={"adopted_from": "run-elsewhere"})
    assert await record_unleased(store, [adopted, a_response(other)]) == [
        adopted,
        a_response(other),
    ]
    assert (await store.spending(experiment.experiment_id)).committed == 21_000
    assert (await store.calls(experiment.experiment_id)).calls == 0
    assert await store.responses([run.run_id]) == {run.run_id: [adopted]}
    unscored = await store.unscored_responses(experiment.experiment_id, 9)
    assert {each.run for each in unscored} == {run, other}


async def test_ended_runs_are_counted_by_model(store: Store, experiment: Experiment) -> None:
    assert await store.ended_runs(experiment.experiment_id) == {}
    runs = list(experiment.runs())
    of_first = [run for run in runs if run.model_id == "reference/tutor-0"]
    other, in_between, *_ = (run for run in runs if run.model_id == "reference/tutor-1")
    await store.fold(
        [a_score(of_first[0]), an_unscored(of_first[1]), a_score(in_between, last_turn=False)],
        [a_failure(of_first[2])],
    )
    assert await store.ended_runs(experiment.experiment_id) == {"reference/tutor-0": 3}
    await store.fold([a_score(other), a_score(of_first[3], profile="other-v1")], [])
    assert await store.ended_runs(experiment.experiment_id) == {
        "reference/tutor-0": 3,
        "reference/tutor-1": 1,
    }


async def test_responses_without_a_score_under_the_profile_are_found(
    store: Store, experiment: Experiment
) -> None:
    id_ = experiment.experiment_id
    scored, unscored, otherwise, *_ = experiment.runs()
    foreign = next(iter((await store.register(an_experiment(occasion="other"))).runs()))
    assert list(await store.unscored_responses(id_, 10)) == []
    await store.take_leases([claim_of(unscored, "lease")], "runner")
    await store.record([a_response(unscored)], ["lease"])
    await record_unleased(store, [a_response(run) for run in (scored, otherwise, foreign)])
    await store.fold([a_score(scored), a_score(otherwise, profile="other-v1")], [])
    found = {response.run for response in await store.unscored_responses(id_, 10)}
    assert found == {unscored, otherwise}
    assert len(await store.unscored_responses(id_, 1)) == 1
    await store.fold([an_unscored(unscored), a_score(otherwise)], [])
    assert list(await store.unscored_responses(id_, 10)) == []


async def test_of_the_failures_of_a_run_that_of_its_last_request_stays_the_first_of_equal_ones(
    store: Store, other_store: Store, experiment: Experiment
) -> None:
    run, other, *_ = experiment.runs()
    by_turn = [a_failure(run, turn=turn) for turn in (1, 2, 3)]

    async def recorded() -> RecordedFailure:
        [(run_id, failed)] = (await other_store.recorded_failures([run.run_id, "run-x"])).items()
        assert run_id == run.run_id
        return failed

    await store.record_failures([RecordedFailure(by_turn[0], 1), RecordedFailure(by_turn[1], 1)])
    assert await recorded() == RecordedFailure(by_turn[0], 1)
    await store.record_failures([RecordedFailure(by_turn[1], 0), RecordedFailure(by_turn[1], 1)])
    assert await recorded() == RecordedFailure(by_turn[0], 1)
    await other_store.record_failures(
        [
            RecordedFailure(by_turn[1], 1),
            RecordedFailure(a_failure(other), 0),
            RecordedFailure(by_turn[2], 3),
            RecordedFailure(by_turn[1], 2),
        ]
    )
    assert await recorded() == RecordedFailure(by_turn[2], 3)
    await store.record_failures([])
    assert await store.recorded_failures([]) == {}


async def test_a_failure_that_was_recorded_is_found_until_it_is_folded(
    store: Store, experiment: Experiment
) -> None:
    id_ = experiment.experiment_id
    first, second, ended, *_ = experiment.runs()

    async def unfolded(limit: int = 10) -> set[RunFailure]:
        return set(await store.unfolded_failures(id_, limit))

    failures = [a_failure(run) for run in (first, second, ended)]
    await store.record_failures([RecordedFailure(failure, 0) for failure in failures])
    assert await unfolded() == set(failures)
    assert len(await unfolded(limit=2)) == 2
    await store.fold([a_score(ended)], [failures[0], failures[2]])
    assert await unfolded() == {failures[1]}
    assert list(await store.unfolded_failures("exp-unknown", 10)) == []


async def test_a_later_failure_of_a_run_is_unfolded_where_it_is_further_on(
    store: Store, experiment: Experiment
) -> None:
    id_ = experiment.experiment_id
    again, further, *_ = experiment.runs()
    await store.fold([], [a_failure(again), a_failure(further)])
    changed = a_failure(again).model_copy(update={"message": "still too many"})
    await store.record_failures(
        [RecordedFailure(changed, 1), RecordedFailure(a_failure(further, turn=2), 1)]
    )
    assert list(await store.unfolded_failures(id_, 10)) == [a_failure(further, turn=2)]
    await store.fold([], [a_failure(further, turn=2)])
    assert list(await store.unfolded_failures(id_, 10)) == []
