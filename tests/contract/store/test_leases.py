"""A turn is leased to one owner for one call; every grant is counted."""

from __future__ import annotations

import asyncio

import pytest

from socratic_bench.domain.manifest import Experiment
from socratic_bench.domain.run import Run
from socratic_bench.ports.store import CallCount, Store, TurnKey
from tests.contract.store.facts import MINUTE, MONDAY, a_response, an_experiment, lease

EXPERIMENT = an_experiment().experiment_id


@pytest.fixture
async def experiment(store: Store) -> Experiment:
    return await store.register(an_experiment())


@pytest.fixture
def run(experiment: Experiment) -> Run:
    return next(iter(experiment.runs()))


@pytest.fixture
def turn(run: Run) -> TurnKey:
    return TurnKey(run.run_id, 1)


async def test_a_turn_that_nobody_holds_is_granted(store: Store, turn: TurnKey) -> None:
    assert await lease(store, EXPERIMENT, [turn], "runner-a", MONDAY, MONDAY + MINUTE) == {turn}


async def test_a_turn_that_another_holds_is_refused(store: Store, turn: TurnKey) -> None:
    await lease(store, EXPERIMENT, [turn], "runner-a", MONDAY, MONDAY + MINUTE)
    now = MONDAY + MINUTE  # the lease ends now, and so has not run out before
    assert await lease(store, EXPERIMENT, [turn], "runner-b", now, now + MINUTE) == set()


async def test_a_lease_that_ran_out_is_granted_to_another_and_lost_to_the_first(
    store: Store, turn: TurnKey
) -> None:
    await lease(store, EXPERIMENT, [turn], "runner-a", MONDAY, MONDAY + MINUTE)
    later = MONDAY + 2 * MINUTE
    assert await lease(store, EXPERIMENT, [turn], "runner-b", later, later + MINUTE) == {turn}
    assert await lease(store, EXPERIMENT, [turn], "runner-a", later, later + MINUTE) == set()


async def test_the_owner_of_a_lease_is_granted_it_again_and_for_longer(
    store: Store, turn: TurnKey
) -> None:
    await lease(store, EXPERIMENT, [turn], "runner-a", MONDAY, MONDAY + MINUTE)
    assert await lease(store, EXPERIMENT, [turn], "runner-a", MONDAY, MONDAY + 5 * MINUTE) == {turn}
    now = MONDAY + 3 * MINUTE
    assert await lease(store, EXPERIMENT, [turn], "runner-b", now, now + MINUTE) == set()


async def test_each_turn_is_granted_or_refused_by_itself(store: Store, run: Run) -> None:
    first, second, third = (TurnKey(run.run_id, number) for number in (1, 2, 3))
    await lease(store, EXPERIMENT, [second], "runner-a", MONDAY, MONDAY + MINUTE)
    granted = await lease(
        store, EXPERIMENT, [first, second, third], "runner-b", MONDAY, MONDAY + MINUTE
    )
    assert granted == {first, third}
    assert await lease(store, EXPERIMENT, [], "runner-b", MONDAY, MONDAY + MINUTE) == set()


async def test_a_turn_whose_response_is_stored_is_never_granted(
    store: Store, run: Run, turn: TurnKey
) -> None:
    await lease(store, EXPERIMENT, [turn], "runner-a", MONDAY, MONDAY + MINUTE)
    await store.record([a_response(run, last_turn=False)])
    for owner in ("runner-a", "runner-b"):
        later = MONDAY + 60 * MINUTE
        assert await lease(store, EXPERIMENT, [turn], owner, later, later + MINUTE) == set()


async def test_of_several_turns_those_without_a_response_are_granted_and_counted(
    store: Store, experiment: Experiment
) -> None:
    answered, leased, free, *_ = experiment.runs()
    turns = [TurnKey(run.run_id, 1) for run in (answered, leased, free)]
    await store.record([a_response(answered)])
    await lease(store, EXPERIMENT, [turns[1]], "runner-a", MONDAY, MONDAY + MINUTE)
    for calls in (2, 3):
        granted = await lease(store, EXPERIMENT, turns, "runner-b", MONDAY, MONDAY + MINUTE)
        assert granted == {turns[2]}
        assert await store.calls(EXPERIMENT) == CallCount(calls, turns=2)


async def test_the_turn_after_a_stored_response_is_granted(store: Store, run: Run) -> None:
    await store.record([a_response(run, last_turn=False)])
    following = TurnKey(run.run_id, 2)
    assert await lease(store, EXPERIMENT, [following], "runner-a", MONDAY, MONDAY + MINUTE) == {
        following
    }


async def test_every_grant_is_counted_as_a_call_and_no_refusal_is(
    store: Store, experiment: Experiment, run: Run, turn: TurnKey
) -> None:
    assert await store.calls(experiment.experiment_id) == CallCount(calls=0, turns=0)
    await lease(store, EXPERIMENT, [turn, turn], "runner-a", MONDAY, MONDAY + MINUTE)
    await lease(store, EXPERIMENT, [turn], "runner-b", MONDAY, MONDAY + MINUTE)
    assert await store.calls(experiment.experiment_id) == CallCount(calls=1, turns=1)
    await lease(store, EXPERIMENT, [turn], "runner-a", MONDAY, MONDAY + MINUTE)
    await lease(store, EXPERIMENT, [TurnKey(run.run_id, 2)], "runner-a", MONDAY, MONDAY + MINUTE)
    assert await store.calls(experiment.experiment_id) == CallCount(calls=3, turns=2)


async def test_calls_stay_counted_once_the_response_is_stored(
    store: Store, experiment: Experiment, run: Run, turn: TurnKey
) -> None:
    await lease(store, EXPERIMENT, [turn], "runner-a", MONDAY, MONDAY + MINUTE)
    await store.record([a_response(run)])
    await lease(store, EXPERIMENT, [turn], "runner-b", MONDAY + 9 * MINUTE, MONDAY + 10 * MINUTE)
    assert await store.calls(experiment.experiment_id) == CallCount(calls=1, turns=1)


async def test_calls_of_another_experiment_are_not_counted(
    store: Store, experiment: Experiment
) -> None:
    other = await store.register(an_experiment(occasion="again"))
    turns = [TurnKey(run.run_id, 1) for run in other.runs()]
    await lease(store, other.experiment_id, turns, "runner-a", MONDAY, MONDAY + MINUTE)
    assert await store.calls(experiment.experiment_id) == CallCount(calls=0, turns=0)
    assert await store.calls(other.experiment_id) == CallCount(calls=12, turns=12)


async def test_of_many_owners_at_once_one_is_granted_each_turn(
    store: Store, other_store: Store
) -> None:
    experiment = await store.register(an_experiment(models=5, repeats=40))
    turns = [TurnKey(run.run_id, 1) for run in experiment.runs()]
    granted = await asyncio.gather(
        *(
            lease(
                (store, other_store)[number % 2],
                experiment.experiment_id,
                turns[number:] + turns[:number],
                f"runner-{number}",
                MONDAY,
                MONDAY + MINUTE,
            )
            for number in range(8)
        )
    )
    assert sorted(turn for turns in granted for turn in turns) == sorted(turns)
    assert await store.calls(experiment.experiment_id) == CallCount(600, 600)


async def test_a_lease_that_was_given_back_was_never_granted(store: Store, run: Run) -> None:
    turns = [TurnKey(run.run_id, turn) for turn in (1, 2)]
    await lease(store, EXPERIMENT, turns, "runner-a", MONDAY, MONDAY + MINUTE)
    for _ in range(2):
        await store.give_back(EXPERIMENT, turns[:1], "runner-a")
    assert await store.calls(EXPERIMENT) == CallCount(calls=1, turns=1)
    taken = await lease(store, EXPERIMENT, turns, "runner-b", MONDAY, MONDAY + MINUTE)
    assert taken == set(turns[:1])
    assert await store.calls(EXPERIMENT) == CallCount(calls=2, turns=2)


async def test_calls_made_before_stay_counted_when_a_later_lease_is_given_back(
    store: Store, turn: TurnKey
) -> None:
    for _ in range(3):
        await lease(store, EXPERIMENT, [turn], "runner-a", MONDAY, MONDAY + MINUTE)
    await store.give_back(EXPERIMENT, [turn], "runner-a")
    assert await store.calls(EXPERIMENT) == CallCount(calls=2, turns=1)


async def test_nobody_gives_back_what_another_holds_or_what_is_answered(
    store: Store, run: Run, turn: TurnKey
) -> None:
    await lease(store, EXPERIMENT, [turn], "runner-a", MONDAY, MONDAY + MINUTE)
    await store.give_back(EXPERIMENT, [turn, TurnKey("run-unknown", 1)], "runner-b")
    assert await lease(store, EXPERIMENT, [turn], "runner-b", MONDAY, MONDAY + MINUTE) == set()
    await store.record([a_response(run)])
    await store.give_back(EXPERIMENT, [turn], "runner-a")
    await store.give_back(EXPERIMENT, [], "runner-a")
    assert await store.calls(EXPERIMENT) == CallCount(calls=1, turns=1)
