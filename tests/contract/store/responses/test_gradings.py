"""Gradings and students' messages need no score; later experiments find their grader's gradings."""

from __future__ import annotations

import pytest

from socratic_bench.domain.experiment.manifest import Experiment, Grader
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.domain.leasing import LeaseAnswer
from socratic_bench.domain.student import student_run_id
from socratic_bench.ports.stores.leases import Lease, LeaseKey
from socratic_bench.ports.stores.store import Store
from tests.contract.store.facts import (
    GRADED,
    GRADER,
    MINUTE,
    MONDAY,
    a_grading,
    a_response,
    a_score,
    an_experiment,
    claim_of,
    record_unleased,
    with_grader,
)

TEXT = "What would you try first?"


def a_graded_experiment(repeats: int = 1, minutes: int = 0) -> Experiment:
    return with_grader(
        an_experiment(models=1, scenarios=1, repeats=repeats), created_at=MONDAY + minutes * MINUTE
    )


async def test_a_grading_is_leased_counted_charged_and_settled_as_any_turn(store: Store) -> None:
    experiment = a_graded_experiment()
    id_ = experiment.experiment_id
    await store.register(experiment)
    grading = a_grading(experiment, TEXT)
    mine = claim_of(grading.run, "mine", 2_000)
    assert await store.take_leases([mine], "runner-1") == [LeaseAnswer.GRANTED]
    other = claim_of(grading.run, "other", 2_000)
    assert await store.take_leases([other], "runner-2") == [LeaseAnswer.HELD]
    assert (await store.spending(id_)).committed == 2_000
    assert await store.record([grading], ["mine"]) == [grading]
    assert (await store.spending(id_)).committed == 500
    assert await store.take_leases([other], "runner-2") == [LeaseAnswer.ANSWERED]
    assert (await store.calls(id_)).calls == 1
    assert await store.responses([grading.run.run_id]) == {grading.run.run_id: [grading]}


async def test_a_grading_waits_for_no_score_and_a_graded_response_does(store: Store) -> None:
    experiment = a_graded_experiment()
    id_, [run] = experiment.experiment_id, experiment.runs()
    await store.register(experiment)
    response = a_response(run, TEXT).model_copy(update={"profile": GRADED})
    grading = a_grading(experiment, TEXT)
    await record_unleased(store, [response, grading])
    assert await store.unscored_responses(id_, 10) == [response]
    assert await store.complete(id_, MONDAY) is None
    await store.fold([a_score(run, profile=GRADED)], [])
    assert await store.unscored_responses(id_, 10) == []
    assert await store.done_runs(id_, [run.run_id]) == {run.run_id}
    assert await store.complete(id_, MONDAY) == MONDAY


async def test_a_students_message_is_leased_as_any_turn_and_needs_no_score(store: Store) -> None:
    experiment = an_experiment(models=1, scenarios=1, repeats=1)
    id_, [run] = experiment.experiment_id, experiment.runs()
    await store.register(experiment)
    student = run.model_copy(update={"run_id": student_run_id(run.run_id), "model_id": "vllm/s"})
    message = a_response(student, "Please tell me.", cost=500).model_copy(update={"turn": 2})
    key = LeaseKey(id_, student.run_id, 2, "mine")
    assert await store.take_leases([Lease(key, 60.0, 2_000)], "runner-1") == [LeaseAnswer.GRANTED]
    assert await store.record([message], ["mine"]) == [message]
    assert await store.record([message.model_copy(update={"text": "No."})], [None]) == [message]
    assert (await store.spending(id_)).committed == 500
    assert await store.unscored_responses(id_, 10) == []
    await store.fold([a_score(run)], [])
    assert await store.complete(id_, MONDAY) == MONDAY
    assert await store.responses([student.run_id]) == {student.run_id: [message]}


async def test_experiments_are_found_by_their_grader_and_no_other_one(store: Store) -> None:
    older, newer = a_graded_experiment(1), a_graded_experiment(2, minutes=1)
    hostile = Grader(model=GRADER.model.model_copy(update={"base_url": "http://127.0.0.1:9/v1"}))
    for each in (older, newer, with_grader(an_experiment(), hostile), an_experiment()):
        await store.register(each)
    found = await store.asked_in([GRADER.key], 9)
    assert found == {GRADER.key: [newer.experiment_id, older.experiment_id]}


async def test_an_adopted_grading_costs_no_call_and_no_money_and_outlives_its_source(
    store: Store,
) -> None:
    older, newer = a_graded_experiment(1), a_graded_experiment(2, minutes=1)
    for each in (older, newer):
        await store.register(each)
    source = a_grading(older, TEXT)
    await record_unleased(store, [source])
    copy = a_grading(newer, TEXT).model_copy(update={"adopted_from": source.run.run_id})
    assert await record_unleased(store, [copy]) == [copy]
    assert (await store.calls(newer.experiment_id)).calls == 0
    assert (await store.spending(newer.experiment_id)).committed == 0
    await store.change_state(older.experiment_id, ExperimentState.DELETED)
    while await store.delete_rows(older.experiment_id):
        pass
    runs = [source.run.run_id, copy.run.run_id]
    assert await store.responses(runs) == {copy.run.run_id: [copy]}
    assert await store.asked_in([GRADER.key], 9) == {GRADER.key: [newer.experiment_id]}


@pytest.mark.parametrize("state", [ExperimentState.PAUSED, ExperimentState.CANCELLED])
async def test_no_grading_begins_in_a_stopped_experiment(
    store: Store, state: ExperimentState
) -> None:
    experiment = a_graded_experiment()
    await store.register(experiment)
    await store.change_state(experiment.experiment_id, state)
    claim = claim_of(a_grading(experiment, TEXT).run, "mine")
    assert await store.take_leases([claim], "runner-1") == [LeaseAnswer.STOPPED]
