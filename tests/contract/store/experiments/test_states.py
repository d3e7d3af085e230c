"""Experiments can be paused, resumed, cancelled and deleted; late facts then change nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.experiment.state import LEFT_FOR, ExperimentState
from socratic_bench.domain.leasing import LeaseAnswer
from socratic_bench.domain.run import Run
from socratic_bench.errors import ExperimentStopped, StoreError
from socratic_bench.ports.stores.experiments import ExperimentCounts, Progress
from socratic_bench.ports.stores.leases import CallCount, CallEnd, ModelInHand
from socratic_bench.ports.stores.responses import NO_LEASE, RecordedFailure
from socratic_bench.ports.stores.store import Store
from tests.contract.store.facts import (
    MINUTE,
    MONDAY,
    StoppedClock,
    a_failure,
    a_response,
    a_score,
    an_experiment,
    claim_of,
    contents,
    record_unleased,
)
from tests.waiting import until

OPEN, PAUSED, RESUMED = ExperimentState.OPEN, ExperimentState.PAUSED, ExperimentState.RESUMED
CANCELLED, DELETED = ExperimentState.CANCELLED, ExperimentState.DELETED
GRANTED, STOPPED = LeaseAnswer.GRANTED, LeaseAnswer.STOPPED
STOPPED_STATES = (PAUSED, CANCELLED, DELETED)


@pytest.fixture
async def experiment(store: Store) -> Experiment:
    return await store.register(an_experiment())


@pytest.fixture
async def other(store: Store) -> Experiment:
    """Another one, of the same models."""
    return await store.register(an_experiment(occasion="another", budget=1_000))


@pytest.fixture
def runs(experiment: Experiment) -> list[Run]:
    return list(experiment.runs())


async def _put_into(store: Store, experiment_id: str, state: ExperimentState) -> None:
    if state is RESUMED:
        await store.change_state(experiment_id, PAUSED)
    if state is not OPEN:
        assert await store.change_state(experiment_id, state) is state


async def _remove(store: Store, experiment_id: str) -> int:
    rows = 0
    while some := await store.delete_rows(experiment_id):
        rows += some
    return rows


async def test_a_new_experiment_is_open(store: Store, experiment: Experiment) -> None:
    id_ = experiment.experiment_id
    assert experiment.state is OPEN
    assert await store.states([id_, "exp-unknown"]) == {id_: OPEN}
    assert [each.state for each in await store.running()] == [OPEN]


@pytest.mark.parametrize("present", ExperimentState)
@pytest.mark.parametrize("to", ExperimentState)
async def test_a_state_is_left_only_for_those_that_follow_it(
    store: Store, experiment: Experiment, present: ExperimentState, to: ExperimentState
) -> None:
    id_ = experiment.experiment_id
    await _put_into(store, id_, present)
    expected = to if present in LEFT_FOR[to] else present
    assert await store.change_state(id_, to) is expected
    assert await store.states([id_]) == {id_: expected}
    assert await store.change_state(id_, expected) is expected


async def test_the_state_of_an_experiment_that_is_not_there_cannot_be_changed(store: Store) -> None:
    with pytest.raises(StoreError, match="exp-unknown"):
        await store.change_state("exp-unknown", PAUSED)
    assert await store.delete_rows("exp-unknown") == 0


async def test_resuming_what_no_service_carries_out_or_what_is_complete_opens_it(
    store: Store,
) -> None:
    embedded = await store.register(an_experiment().model_copy(update={"submitted": False}))
    complete = await store.register(an_experiment(occasion="complete"))
    await store.fold([a_score(run) for run in complete.runs()], [])
    await store.complete(complete.experiment_id, MONDAY)
    for each in (embedded, complete):
        await store.change_state(each.experiment_id, PAUSED)
        assert await store.change_state(each.experiment_id, RESUMED) is OPEN


@pytest.mark.parametrize("state", STOPPED_STATES)
async def test_a_claim_of_a_stopped_experiment_is_refused_and_that_of_another_granted(
    store: Store, experiment: Experiment, runs: Sequence[Run], other: Experiment,
    state: ExperimentState,
) -> None:  # fmt: skip
    foreign, priced, *_ = other.runs()
    await store.change_state(experiment.experiment_id, state)
    claims = [
        claim_of(runs[0], "a1"),
        claim_of(foreign, "a1"),
        claim_of(runs[1], "a1", 5),
        claim_of(priced, "a1", 5),
    ]
    answers = await store.take_leases(claims, "runner")
    assert list(answers) == [STOPPED, GRANTED, STOPPED, GRANTED]
    assert await store.calls(experiment.experiment_id) == CallCount(calls=0, turns=0)
    assert (await store.spending(other.experiment_id)).committed == 5


@pytest.mark.parametrize("state", [PAUSED, CANCELLED])
async def test_a_lease_that_was_granted_before_is_not_granted_again_and_is_settled(
    store: Store, experiment: Experiment, runs: Sequence[Run], state: ExperimentState
) -> None:
    claims = [claim_of(run, "a1") for run in runs[:3]]
    await store.take_leases(claims, "runner")
    await store.change_state(experiment.experiment_id, state)
    assert list(await store.take_leases(claims, "runner")) == [STOPPED] * 3
    await store.give_back_leases([claims[0].key])
    await store.end_calls([CallEnd(claims[1].key, billed=False)])
    response = a_response(runs[2])
    assert await store.record([response], ["a1"]) == [response]
    assert await store.responses([runs[2].run_id]) == {runs[2].run_id: [response]}
    assert await store.calls(experiment.experiment_id) == CallCount(calls=2, turns=2)


async def test_calls_begin_again_once_it_is_resumed(
    store: Store, experiment: Experiment, runs: Sequence[Run]
) -> None:
    for stopped in (PAUSED, CANCELLED):
        await store.change_state(experiment.experiment_id, stopped)
        assert await store.change_state(experiment.experiment_id, RESUMED) is RESUMED
        claim = claim_of(runs[0], f"after {stopped}")
        assert list(await store.take_leases([claim], "runner")) == [GRANTED]


async def test_once_a_change_of_state_is_stored_nothing_is_granted_any_more(
    store: Store, other_store: Store, experiment: Experiment, other: Experiment
) -> None:
    """Two runners claim as fast as they can; each claim is of a turn of its own."""
    ids = [experiment.experiment_id, other.experiment_id]
    stopped = asyncio.Event()
    answers: dict[str, list[LeaseAnswer]] = {id_: [] for id_ in ids}

    async def claim_on(runner: Store, owner: str) -> None:
        number = 0
        while not stopped.is_set() or number < 20:
            number += 1
            run = next(iter(experiment.runs()))
            claims = [
                claim_of(
                    run.model_copy(
                        update={"experiment_id": id_, "run_id": f"run-{id_}-{owner}-{number}"}
                    ),
                    f"{owner}-{number}",
                )
                for id_ in ids
            ]
            for id_, answer in zip(ids, await runner.take_leases(claims, owner), strict=True):
                answers[id_].append(answer)

    async def some_were_granted() -> bool:
        return all(len(each) > 20 for each in answers.values())

    runners = [
        asyncio.create_task(claim_on((store, other_store)[number % 2], f"runner-{number}"))
        for number in range(6)
    ]
    await until(some_were_granted, bool, "claims of both experiments")
    await store.change_state(ids[0], PAUSED)
    calls = (await store.calls(ids[0])).calls
    await asyncio.sleep(0.2)  # what is tried is that nothing happens
    stopped.set()
    await asyncio.gather(*runners)
    assert (await other_store.calls(ids[0])).calls == calls
    assert answers[ids[0]].count(GRANTED) == calls
    assert set(answers[ids[0]]) == {GRANTED, STOPPED}
    assert set(answers[ids[1]]) == {GRANTED}


@pytest.mark.parametrize("state", STOPPED_STATES)
async def test_a_stopped_experiment_is_not_registered_again_and_the_next_command_is_named(
    store: Store, experiment: Experiment, state: ExperimentState
) -> None:
    await store.change_state(experiment.experiment_id, state)
    command = "another `occasion`" if state is DELETED else "socratic-bench resume"
    with pytest.raises(ExperimentStopped, match=f"{experiment.experiment_id}.*{state}.*{command}"):
        await store.register(an_experiment(budget=7))
    assert (await store.spending(experiment.experiment_id)).budget is None


async def test_an_experiment_that_only_run_began_is_left_alone_by_services_until_submitted(
    store: Store,
) -> None:
    alone = an_experiment().model_copy(update={"submitted": False})
    assert await store.register(alone) == alone
    assert await store.experiments() == [alone]
    assert await store.running() == []
    submitted = await store.register(an_experiment(created_at=MONDAY + MINUTE))
    assert submitted == alone.model_copy(update={"submitted": True})
    assert [each.experiment_id for each in await store.running()] == [alone.experiment_id]
    assert await store.register(alone) == submitted
    assert await store.experiments() == [submitted]


async def test_stopped_experiments_are_running_with_their_state_and_deleted_ones_are_not(
    store: Store, experiment: Experiment
) -> None:
    for state in (PAUSED, RESUMED, CANCELLED):
        await store.change_state(experiment.experiment_id, state)
        [running] = await store.running()
        assert running.state is state
        stored = await store.experiment(experiment.experiment_id)
        assert stored is not None
        assert stored.state is state
        assert await store.experiments() == [stored]
        [outline] = await store.outlines()
        assert outline.state is state
    await store.change_state(experiment.experiment_id, DELETED)
    assert await store.running() == []
    assert await store.experiments() == []
    assert await store.outlines() == []
    assert await store.experiment(experiment.experiment_id) is None


async def test_experiments_are_counted_as_they_stand(store: Store) -> None:
    experiments = [await store.register(an_experiment(occasion=str(number))) for number in range(6)]
    ids = [experiment.experiment_id for experiment in experiments]
    for id_, state in zip(ids, (PAUSED, CANCELLED, DELETED, RESUMED, CANCELLED), strict=False):
        await _put_into(store, id_, state)
    await store.fold([a_score(run) for run in experiments[4].runs()], [])
    await store.complete(ids[4], MONDAY)
    assert await store.count_experiments() == ExperimentCounts(
        complete=1, exhausted=0, paused=1, cancelled=1, running=2
    )


async def _with_everything(store: Store, experiment: Experiment) -> None:
    """Store of an experiment something of each kind."""
    answered, failed, held, *_ = experiment.runs()
    claims = [claim_of(run, "lease", 9) for run in (answered, failed, held)]
    await store.take_leases(claims, "runner")
    await store.heartbeat("runner", [ModelInHand(experiment.experiment_id, answered.model_id)])
    await store.record([a_response(answered, cost=3)], ["lease"])
    await store.record_failures([RecordedFailure(a_failure(failed), 0)])
    await store.fold([a_score(answered)], [a_failure(failed)])


async def _facts_of(store: Store, experiment: Experiment) -> object:
    id_ = experiment.experiment_id
    run_ids = [run.run_id for run in experiment.runs()]
    asked_in = await store.asked_in(experiment.conversation_keys.values(), 9)
    return (
        sum(id_ in ids for ids in asked_in.values()),
        await store.calls(id_),
        await store.responses(run_ids),
        await store.recorded_failures(run_ids),
        [page async for page in store.score_rows(id_)],
        [page async for page in store.failure_rows(id_)],
        contents(await store.cells([id_])),
    )


NOTHING: tuple[object, ...] = (0, CallCount(calls=0, turns=0), {}, {}, [], [], {})


async def test_everything_of_a_deleted_experiment_goes_and_nothing_of_another(
    store: Store, other_store: Store, experiment: Experiment, other: Experiment
) -> None:
    for each in (experiment, other):
        await _with_everything(store, each)
    kept = await _facts_of(store, other)
    spent = await store.spending(other.experiment_id)
    revisions = {await store.revision()}

    await store.change_state(experiment.experiment_id, DELETED)
    assert await store.revision() not in revisions
    assert await store.deletable(None) == [experiment.experiment_id]
    while await store.delete_rows(experiment.experiment_id):
        revision = await store.revision()
        assert revision not in revisions
        revisions.add(revision)

    assert await _facts_of(other_store, experiment) == NOTHING
    assert await _facts_of(other_store, other) == kept
    assert await store.spending(other.experiment_id) == spent
    assert await store.deletable(None) == []
    assert await store.delete_rows(experiment.experiment_id) == 0


async def test_nothing_of_an_experiment_that_is_not_deleted_is_removed(
    store: Store, experiment: Experiment
) -> None:
    await _with_everything(store, experiment)
    kept = await _facts_of(store, experiment)
    for state in (OPEN, PAUSED, CANCELLED):
        await store.change_state(experiment.experiment_id, state)
        assert await store.delete_rows(experiment.experiment_id) == 0
    assert await _facts_of(store, experiment) == kept


async def test_late_facts_of_a_deleted_experiment_change_nothing(
    store: Store, experiment: Experiment, runs: Sequence[Run], other: Experiment
) -> None:
    foreign, failed, *_ = other.runs()
    claims = [claim_of(run, "lease", 9) for run in runs[:2]]
    await store.take_leases(claims, "runner")
    await store.change_state(experiment.experiment_id, DELETED)
    await _remove(store, experiment.experiment_id)
    revision = await store.revision()

    late, known = a_response(runs[0], cost=3), a_response(foreign)
    assert list(await store.record([late], ["lease"])) == [late]
    assert list(await store.record([late, known], ["lease", NO_LEASE])) == [late, known]
    await store.end_calls([CallEnd(claims[1].key, billed=True)])
    await store.give_back_leases([claims[1].key])
    await store.record_failures([RecordedFailure(a_failure(runs[1]), 0)])
    assert await store.fold([a_score(runs[0])], [a_failure(runs[1])]) == []
    assert await store.revision() == revision
    assert await _facts_of(store, experiment) == NOTHING
    assert await store.progress(experiment.experiment_id) == Progress(12, 0, 0)
    await store.mark_planned(experiment.experiment_id, MONDAY)
    assert await store.deletable(None) == []

    cells = await store.fold(
        [a_score(runs[0]), a_score(foreign)], [a_failure(runs[1]), a_failure(failed)]
    )
    assert {cell.key.experiment_id for cell in cells} == {other.experiment_id}
    assert (await store.progress(other.experiment_id)).done == 2


async def test_facts_that_come_while_an_experiment_is_deleted_leave_nothing_behind(
    store: Store, other_store: Store
) -> None:
    """Some come before the change of state, and are removed; the others are passed over."""
    experiment = await store.register(an_experiment(repeats=20))
    runs = list(experiment.runs())
    id_ = experiment.experiment_id

    async def deliver(run: Run, target: Store) -> None:
        await record_unleased(target, [a_response(run)])
        await target.fold([a_score(run)], [])
        await target.record_failures([RecordedFailure(a_failure(run), 0)])

    coming = [
        asyncio.create_task(deliver(run, (store, other_store)[number % 2]))
        for number, run in enumerate(runs)
    ]
    await until(lambda: store.progress(id_), lambda it: it.done >= 10, "some facts")
    await other_store.change_state(id_, DELETED)
    removed = await _remove(other_store, id_)
    await asyncio.gather(*coming)
    assert removed
    assert await _facts_of(store, experiment) == NOTHING
    assert await store.deletable(None) == []


async def test_facts_of_what_is_paused_or_cancelled_are_stored_and_may_complete_it(
    store: Store, experiment: Experiment, runs: Sequence[Run]
) -> None:
    await store.change_state(experiment.experiment_id, CANCELLED)
    await record_unleased(store, [a_response(runs[0])])
    await store.fold([a_score(run) for run in runs], [])
    assert (await store.progress(experiment.experiment_id)).done == 12
    assert await store.complete(experiment.experiment_id, MONDAY) == MONDAY


async def test_old_experiments_are_deletable_once_they_are_complete(
    store: Store, experiment: Experiment, other: Experiment, clock: StoppedClock
) -> None:
    await store.fold([a_score(run) for run in experiment.runs()], [])
    await store.complete(experiment.experiment_id, MONDAY)
    assert await store.deletable(None) == []
    assert await store.deletable(MONDAY) == []
    assert await store.deletable(MONDAY + MINUTE) == [experiment.experiment_id]
    await store.change_state(experiment.experiment_id, DELETED)
    assert await store.deletable(None) == [experiment.experiment_id]
    assert await store.complete(other.experiment_id, MONDAY) is None
