"""A turn is leased to one owner for one call; every lease that is not given back is counted."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.leasing import LeaseAnswer
from socratic_bench.domain.run import Run
from socratic_bench.ports.stores.leases import CallCount, CallEnd, Lease
from socratic_bench.ports.stores.store import Store
from tests.contract.store.facts import (
    StoppedClock,
    a_response,
    an_experiment,
    claim_of,
    record_unleased,
)

A, B = "runner-a", "runner-b"
GRANTED, HELD, ANSWERED = LeaseAnswer.GRANTED, LeaseAnswer.HELD, LeaseAnswer.ANSWERED
EXPERIMENT = an_experiment().experiment_id


@pytest.fixture
async def runs(store: Store) -> list[Run]:
    return list((await store.register(an_experiment())).runs())


async def _take(store: Store, claims: Sequence[Lease], owner: str = A) -> list[LeaseAnswer]:
    return list(await store.take_leases(claims, owner))


async def test_a_turn_that_nobody_holds_is_granted(store: Store, runs: list[Run]) -> None:
    assert await _take(store, [claim_of(runs[0], "a1")]) == [GRANTED]
    assert await _take(store, []) == []


async def test_a_turn_that_another_holds_is_refused(store: Store, runs: list[Run]) -> None:
    await _take(store, [claim_of(runs[0], "a1")])
    assert await _take(store, [claim_of(runs[0], "b1")], B) == [HELD]


@pytest.mark.smoke
async def test_a_lease_that_ran_out_is_granted_to_another_and_lost_to_the_first(
    store: Store, runs: list[Run], clock: StoppedClock
) -> None:
    await _take(store, [claim_of(runs[0], "a1")])
    clock.pass_by(61)
    assert await _take(store, [claim_of(runs[0], "b1")], B) == [GRANTED]
    assert await _take(store, [claim_of(runs[0], "a2")]) == [HELD]
    assert await _take(store, [claim_of(runs[0], "a1")]) == [HELD]


async def test_an_owner_takes_over_its_own_lease_under_another_id_and_for_longer(
    store: Store, runs: list[Run], clock: StoppedClock
) -> None:
    await _take(store, [claim_of(runs[0], "a1")])
    assert await _take(store, [claim_of(runs[0], "a2", seconds=300)]) == [GRANTED]
    clock.pass_by(200)
    assert await _take(store, [claim_of(runs[0], "b1")], B) == [HELD]
    assert await store.calls(EXPERIMENT) == CallCount(calls=2, turns=1)


async def test_a_claim_that_is_repeated_is_granted_again_and_changes_nothing(
    store: Store, other_store: Store, runs: list[Run], clock: StoppedClock
) -> None:
    claims = [claim_of(run, "a1", seconds=60) for run in runs[:2]]
    for each in (store, other_store, store):
        assert await _take(each, claims) == [GRANTED, GRANTED]
        clock.pass_by(20)
    assert await store.calls(EXPERIMENT) == CallCount(calls=2, turns=2)
    clock.pass_by(1)
    assert await _take(store, [claim_of(runs[0], "b1")], B) == [GRANTED]


async def test_a_repeated_claim_is_told_apart_among_new_ones(store: Store, runs: list[Run]) -> None:
    await _take(store, [claim_of(runs[1], "a1")])
    await _take(store, [claim_of(runs[2], "b1")], B)
    claims = [claim_of(run, "a1") for run in runs[:3]]
    assert await _take(store, claims) == [GRANTED, GRANTED, HELD]
    assert await store.calls(EXPERIMENT) == CallCount(calls=3, turns=3)


async def test_nobody_is_granted_the_lease_of_another_by_its_id(
    store: Store, runs: list[Run]
) -> None:
    await _take(store, [claim_of(runs[0], "same")])
    assert await _take(store, [claim_of(runs[0], "same")], B) == [HELD]


async def test_answers_come_in_the_order_of_the_claims(store: Store, runs: list[Run]) -> None:
    first, second, third, fourth, *_ = runs
    await _take(store, [claim_of(second, "a1")])
    await record_unleased(store, [a_response(fourth)])
    claims = [claim_of(run, "b1") for run in (fourth, third, second, first)]
    assert await _take(store, claims, B) == [ANSWERED, GRANTED, HELD, GRANTED]


async def test_of_two_claims_of_a_turn_in_one_call_the_second_is_held(
    store: Store, runs: list[Run]
) -> None:
    claims = [claim_of(runs[0], id_) for id_ in ("a1", "a2", "a1")]
    assert await _take(store, claims) == [GRANTED, HELD, GRANTED]
    assert await store.calls(EXPERIMENT) == CallCount(calls=1, turns=1)
    await record_unleased(store, [a_response(runs[1])])
    claims = [claim_of(runs[1], id_) for id_ in ("a1", "a2")]
    assert await _take(store, claims) == [ANSWERED, ANSWERED]


async def test_each_lease_lasts_as_long_as_its_own_claim_says(
    store: Store, runs: list[Run], clock: StoppedClock
) -> None:
    await _take(
        store, [claim_of(runs[0], "a1", seconds=10), claim_of(runs[1], "a1", seconds=1000.5)]
    )
    clock.pass_by(11)
    claims = [claim_of(run, "b1") for run in runs[:2]]
    assert await _take(store, claims, B) == [GRANTED, HELD]
    clock.pass_by(989)
    assert await _take(store, claims[1:], B) == [HELD]
    clock.pass_by(1)
    assert await _take(store, claims[1:], B) == [GRANTED]


async def test_turns_of_several_experiments_are_claimed_together(
    store: Store, runs: list[Run]
) -> None:
    other = await store.register(an_experiment(occasion="again"))
    foreign = list(other.runs())
    await _take(store, [claim_of(foreign[1], "b1")], B)
    claims = [claim_of(run, "a1") for run in (foreign[0], runs[0], foreign[1], runs[1])]
    assert await _take(store, claims) == [GRANTED, GRANTED, HELD, GRANTED]
    assert await store.calls(EXPERIMENT) == CallCount(calls=2, turns=2)
    assert await store.calls(other.experiment_id) == CallCount(calls=2, turns=2)
    await store.give_back_leases([claim.key for claim in claims])
    assert await store.calls(EXPERIMENT) == CallCount(calls=0, turns=0)


async def test_a_turn_whose_response_is_stored_is_never_granted(
    store: Store, runs: list[Run], clock: StoppedClock
) -> None:
    await _take(store, [claim_of(runs[0], "a1")])
    await store.record([a_response(runs[0], last_turn=False)], ["a1"])
    clock.pass_by(3600)
    for owner in (A, B):
        assert await _take(store, [claim_of(runs[0], "later")], owner) == [ANSWERED]
    assert await store.calls(EXPERIMENT) == CallCount(calls=1, turns=1)
    assert await _take(store, [claim_of(runs[0], "a2", turn=2)]) == [GRANTED]


async def test_a_turn_that_was_answered_beside_its_lease_is_answered_for_all_others(
    store: Store, runs: list[Run], clock: StoppedClock
) -> None:
    await _take(store, [claim_of(runs[0], "a1")])
    await record_unleased(store, [a_response(runs[0])])
    for owner, seconds in ((B, 0), (A, 0), (B, 61)):
        clock.pass_by(seconds)
        assert await _take(store, [claim_of(runs[0], "other")], owner) == [ANSWERED]
    assert await store.calls(EXPERIMENT) == CallCount(calls=1, turns=1)


async def test_of_many_owners_at_once_one_is_granted_each_turn(
    store: Store, other_store: Store
) -> None:
    experiment = await store.register(an_experiment(models=5, repeats=40))
    runs = list(experiment.runs())

    async def take(number: int) -> int:
        claims = [claim_of(run, f"{number}") for run in runs[number:] + runs[:number]]
        answers = await _take((store, other_store)[number % 2], claims, f"runner-{number}")
        return answers.count(GRANTED)

    assert sum(await asyncio.gather(*map(take, range(8)))) == len(runs)
    assert await store.calls(experiment.experiment_id) == CallCount(600, 600)


async def test_a_claim_that_is_repeated_at_the_same_time_counts_once(
    store: Store, other_store: Store
) -> None:
    experiment = await store.register(an_experiment(models=5, repeats=4, budget=10_000))
    claims = [claim_of(run, "a1", 10) for run in experiment.runs()]
    answers = await asyncio.gather(*(_take(each, claims) for each in (store, other_store) * 3))
    assert answers == [[GRANTED] * len(claims)] * 6
    assert await store.calls(experiment.experiment_id) == CallCount(60, 60)
    assert (await store.spending(experiment.experiment_id)).committed == 600


async def test_a_lease_that_was_given_back_was_never_granted(store: Store, runs: list[Run]) -> None:
    claims = [claim_of(runs[0], "a1", turn=turn) for turn in (1, 2)]
    await _take(store, claims)
    for _ in range(2):
        await store.give_back_leases([claims[0].key])
    assert await store.calls(EXPERIMENT) == CallCount(calls=1, turns=1)
    others = [claim_of(runs[0], "b1", turn=turn) for turn in (1, 2)]
    assert await _take(store, others, B) == [GRANTED, HELD]
    assert await store.calls(EXPERIMENT) == CallCount(calls=2, turns=2)


async def test_calls_made_before_stay_counted_when_a_later_lease_is_given_back(
    store: Store, runs: list[Run]
) -> None:
    claims = [claim_of(runs[0], f"a{number}") for number in range(3)]
    for claim in claims:
        await _take(store, [claim])
    await store.give_back_leases([claims[-1].key])
    assert await store.calls(EXPERIMENT) == CallCount(calls=2, turns=1)


async def test_a_lease_that_was_taken_over_can_be_given_back_once(
    store: Store, runs: list[Run], clock: StoppedClock
) -> None:
    claims = [claim_of(runs[0], id_) for id_ in ("a1", "b1")]
    await _take(store, claims[:1])
    clock.pass_by(61)
    await _take(store, claims[1:], B)
    for _ in range(2):
        await store.give_back_leases([claims[0].key])
    assert await store.calls(EXPERIMENT) == CallCount(calls=1, turns=1)
    assert await _take(store, [claim_of(runs[0], "a2")]) == [HELD]


async def test_a_lease_that_is_over_or_unknown_is_not_given_back(
    store: Store, runs: list[Run]
) -> None:
    claims = [claim_of(run, "a1") for run in runs[:3]]
    await _take(store, claims)
    await store.record([a_response(runs[0])], ["a1"])
    await store.end_calls([CallEnd(claims[1].key, billed=False)])
    unknown = [claim_of(run, "unknown").key for run in runs]
    await store.give_back_leases([claims[0].key, claims[1].key, *unknown])
    await store.give_back_leases([])
    assert await store.calls(EXPERIMENT) == CallCount(calls=3, turns=3)
    assert await _take(store, [claim_of(runs[2], "b1")], B) == [HELD]


async def test_a_turn_whose_call_ended_is_free_at_once_and_its_call_counted(
    store: Store, runs: list[Run]
) -> None:
    claims = [claim_of(run, "a1") for run in runs[:2]]
    await _take(store, claims)
    ends = [CallEnd(claims[0].key, billed=False), CallEnd(claims[1].key, billed=True)]
    await store.end_calls(ends)
    others = [claim_of(run, "b1") for run in runs[:2]]
    assert await _take(store, others, B) == [GRANTED, GRANTED]
    await store.end_calls(ends)
    await store.end_calls([])
    assert await _take(store, [claim_of(run, "a2") for run in runs[:2]]) == [HELD, HELD]
    assert await store.calls(EXPERIMENT) == CallCount(calls=4, turns=2)


@pytest.fixture
async def experiment(store: Store) -> Experiment:
    return await store.register(an_experiment())


async def test_calls_of_another_experiment_are_not_counted(
    store: Store, experiment: Experiment
) -> None:
    other = await store.register(an_experiment(occasion="again"))
    await _take(store, [claim_of(run, "a1") for run in other.runs()])
    assert await store.calls(experiment.experiment_id) == CallCount(calls=0, turns=0)
    assert await store.calls(other.experiment_id) == CallCount(calls=12, turns=12)


async def test_a_response_without_any_lease_is_no_call(store: Store, runs: list[Run]) -> None:
    await record_unleased(store, [a_response(run) for run in runs])
    assert await store.calls(EXPERIMENT) == CallCount(calls=0, turns=0)
