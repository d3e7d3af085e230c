"""An owner of leases is alive, dead or gone; leases of the dead are free, and still count."""

from __future__ import annotations

import pytest

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.leasing import DEAD_AFTER_SECONDS, LeaseAnswer
from socratic_bench.domain.provider_batch import LEASE_SECONDS, ProviderBatch
from socratic_bench.domain.run import Run
from socratic_bench.domain.trouble import Trouble
from socratic_bench.ports.stores.leases import (
    CallCount,
    CallEnd,
    Lease,
    ModelInHand,
    Spending,
    WaitingTurn,
)
from socratic_bench.ports.stores.store import Store
from tests.contract.store.facts import MONDAY, StoppedClock, a_response, an_experiment, claim_of

A, B = "runner-a", "runner-b"
ID = an_experiment().experiment_id
GRANTED, HELD = LeaseAnswer.GRANTED, LeaseAnswer.HELD


@pytest.fixture
async def experiment(store: Store) -> Experiment:
    return await store.register(an_experiment(budget=100))


@pytest.fixture
def run(experiment: Experiment) -> Run:
    return next(iter(experiment.runs()))


async def _take(store: Store, claim: Lease, owner: str, *, may_judge: bool = True) -> LeaseAnswer:
    [answer] = await store.take_leases([claim], owner, may_judge=may_judge)
    return answer


async def test_the_leases_of_an_owner_without_a_heartbeat_last_as_long_as_they_may(
    store: Store, run: Run, clock: StoppedClock
) -> None:
    await _take(store, claim_of(run, "a1"), A)
    clock.pass_by(60)
    assert await _take(store, claim_of(run, "b1"), B) is HELD
    clock.pass_by(1)
    assert await _take(store, claim_of(run, "b1"), B) is GRANTED


@pytest.mark.smoke
async def test_the_leases_of_an_owner_whose_heart_has_stopped_are_free(
    store: Store, other_store: Store, run: Run, clock: StoppedClock
) -> None:
    await _take(store, claim_of(run, "a1"), A)
    await store.heartbeat(A, [])
    clock.pass_by(DEAD_AFTER_SECONDS)
    assert await _take(other_store, claim_of(run, "b1"), B) is HELD
    clock.pass_by(1)
    assert await _take(other_store, claim_of(run, "b1"), B) is GRANTED
    assert await _take(store, claim_of(run, "a2"), A) is HELD


async def test_the_leases_of_an_overdue_owner_last_as_long_as_it_lives(
    store: Store, other_store: Store, run: Run, clock: StoppedClock
) -> None:
    await _take(store, claim_of(run, "a1", seconds=60), A)
    for _ in range(10):
        await store.heartbeat(A, [], overdue=True)
        clock.pass_by(DEAD_AFTER_SECONDS)
        assert await _take(other_store, claim_of(run, "b1"), B) is HELD
    assert await store.calls(ID) == CallCount(calls=1, turns=1)
    clock.pass_by(1)
    assert await _take(other_store, claim_of(run, "b1"), B) is GRANTED


async def test_a_lease_that_its_living_owner_forgot_ends_with_its_time(
    store: Store, other_store: Store, run: Run, clock: StoppedClock
) -> None:
    await _take(store, claim_of(run, "a1", seconds=60), A)
    await store.heartbeat(A, [], overdue=True)
    clock.pass_by(61)
    await store.heartbeat(A, [])
    assert await _take(other_store, claim_of(run, "b1"), B) is GRANTED


@pytest.mark.parametrize("is_over", [False, True])
async def test_only_who_has_heard_from_the_store_takes_a_silent_owner_for_dead(
    store: Store, other_store: Store, run: Run, clock: StoppedClock, *, is_over: bool
) -> None:
    await _take(store, claim_of(run, "a1", seconds=60), A)
    await store.heartbeat(A, [])
    clock.pass_by(61 if is_over else DEAD_AFTER_SECONDS + 1)
    assert await _take(other_store, claim_of(run, "b1"), B, may_judge=False) is HELD
    assert await _take(other_store, claim_of(run, "b1"), B) is GRANTED


async def test_everybody_knows_that_an_owner_left_and_that_a_lease_without_an_owner_is_over(
    store: Store, experiment: Experiment, clock: StoppedClock
) -> None:
    left, unknown, *_ = experiment.runs()
    await _take(store, claim_of(left, "a1"), A)
    await store.heartbeat(A, [], overdue=True)
    await store.leave(A)
    assert await _take(store, claim_of(left, "b1"), B, may_judge=False) is GRANTED
    await _take(store, claim_of(unknown, "c1", seconds=60), "unknown")
    assert await _take(store, claim_of(unknown, "b1"), B, may_judge=False) is HELD
    clock.pass_by(61)
    assert await _take(store, claim_of(unknown, "b1"), B, may_judge=False) is GRANTED


async def test_an_owner_that_was_taken_for_dead_is_alive_again_with_its_next_heartbeat(
    store: Store, run: Run, clock: StoppedClock
) -> None:
    await _take(store, claim_of(run, "a1", 10), A)
    await store.heartbeat(A, [ModelInHand(ID, "m")])
    clock.pass_by(DEAD_AFTER_SECONDS + 1)
    assert (await store.spending(ID)).in_flight == 0
    await store.heartbeat(A, [ModelInHand(ID, "m")])
    assert (await store.spending(ID)).in_flight == 10
    assert await _take(store, claim_of(run, "b1"), B) is HELD
    await store.leave(A)
    await store.heartbeat(A, [])
    assert await _take(store, claim_of(run, "b1"), B) is HELD


@pytest.mark.parametrize("beats", [True, False])
async def test_the_leases_of_an_owner_that_has_left_are_free_and_stay_committed(
    store: Store, run: Run, *, beats: bool
) -> None:
    if beats:
        await store.heartbeat(A, [ModelInHand(ID, "m")])
    await _take(store, claim_of(run, "a1", 30), A)
    assert await store.spending(ID) == Spending(100, 30, 30, exhausted=False)
    for _ in range(2):
        await store.leave(A)
    assert await store.spending(ID) == Spending(100, 30, 0, exhausted=False)
    assert await store.models_in_hand(ID) == {}
    assert await _take(store, claim_of(run, "b1", 20), B) is GRANTED
    assert await store.spending(ID) == Spending(100, 50, 20, exhausted=False)


async def test_who_has_the_store_to_itself_finds_every_other_lease_free(
    store: Store, experiment: Experiment
) -> None:
    silent, beating, own, *_ = experiment.runs()
    await _take(store, claim_of(silent, "s", 10), "silent")
    await _take(store, claim_of(beating, "b", 10), "beating")
    await _take(store, claim_of(own, "o", 10), A)
    for owner in ("beating", A):
        await store.heartbeat(owner, [ModelInHand(ID, "m")])
    await store.leave_others(A)
    assert await store.spending(ID) == Spending(100, 30, 10, exhausted=False)
    assert await store.models_in_hand(ID) == {"m": 1}
    claims = [claim_of(run, "b1") for run in (silent, beating, own)]
    assert list(await store.take_leases(claims, B)) == [GRANTED, GRANTED, HELD]
    await store.leave_others("nobody")
    assert await _take(store, claim_of(own, "c1"), "c") is GRANTED


@pytest.mark.smoke
async def test_the_leases_of_a_batch_need_no_process_and_wait_until_each_is_ended(
    store: Store, other_store: Store, experiment: Experiment, clock: StoppedClock
) -> None:
    answered, freed, other, *_ = experiment.runs()
    batch = ProviderBatch.new("openai/m", MONDAY)
    claims = [
        claim_of(run, batch.entry(number), 10, seconds=LEASE_SECONDS)
        for number, run in enumerate((answered, freed))
    ]
    assert list(await store.take_leases(claims, batch.owner)) == [GRANTED, GRANTED]
    await _take(store, claim_of(other, "a1"), A)
    await store.leave_others("nobody")
    clock.pass_by(7 * 24 * 3600)
    assert await _take(other_store, claim_of(answered, "b1"), B) is HELD
    assert await other_store.spending(ID) == Spending(100, 20, 20, exhausted=False)
    assert await other_store.models_in_hand(ID) == {}
    first, second = (WaitingTurn(claim.key, batch.owner, 10) for claim in claims)
    assert set(await other_store.waiting_turns(ID)) == {first, second}
    await other_store.record([a_response(answered, cost=3)], [batch.entry(0)])
    assert list(await store.waiting_turns(ID)) == [second]
    await other_store.end_calls([CallEnd(second.lease, billed=False)])
    assert list(await store.waiting_turns(ID)) == []
    assert await store.spending(ID) == Spending(100, 3, 0, exhausted=False, paid=3)
    assert await _take(store, claim_of(freed, "b1"), B) is GRANTED


async def test_models_in_hand_are_those_of_live_owners_as_each_said_last(
    store: Store, other_store: Store, clock: StoppedClock
) -> None:
    assert await store.models_in_hand(ID) == {}
    await store.heartbeat("dead", [ModelInHand(ID, "m")])
    clock.pass_by(DEAD_AFTER_SECONDS - 1)
    await store.heartbeat(A, [ModelInHand(ID, "m"), ModelInHand(ID, "n"), ModelInHand(ID, "n")])
    await other_store.heartbeat(B, [ModelInHand(ID, "m"), ModelInHand("exp-other", "o")])
    assert await store.models_in_hand(ID) == {"m": 3, "n": 1}
    clock.pass_by(2)
    assert await store.models_in_hand(ID) == {"m": 2, "n": 1}
    await store.heartbeat(A, [ModelInHand(ID, "m")])
    assert await other_store.models_in_hand(ID) == {"m": 2}


async def test_a_frozen_owner_begins_nothing_and_its_reply_counts_to_the_last_nanodollar(
    store: Store, other_store: Store, run: Run, clock: StoppedClock
) -> None:
    await _take(store, claim_of(run, "a1", 30), A)
    await store.heartbeat(A, [])
    clock.pass_by(DEAD_AFTER_SECONDS + 1)
    await _take(other_store, claim_of(run, "b1", 40), B)
    assert await store.spending(ID) == Spending(100, 70, 40, exhausted=False)
    late = a_response(run, "late", cost=11)
    assert await store.record([late], ["a1"]) == [late]
    assert await store.spending(ID) == Spending(100, 51, 40, exhausted=False, paid=11)
    repeated = a_response(run, "repeated", cost=7)
    assert await other_store.record([repeated], ["b1"]) == [late]
    assert await store.spending(ID) == Spending(100, 18, 0, exhausted=False, paid=18)
    assert await store.calls(ID) == CallCount(calls=2, turns=1)


async def test_owners_that_nobody_has_heard_of_for_long_are_forgotten(
    store: Store, run: Run, clock: StoppedClock
) -> None:
    await store.leave("old")
    clock.pass_by(8 * 24 * 3600)
    await store.leave("other")
    await _take(store, claim_of(run, "o1"), "old")
    assert await _take(store, claim_of(run, "b1"), B) is HELD


def _trouble(model_id: str, attempt: int = 1, experiment_id: str = ID) -> Trouble:
    return Trouble(
        experiment_id=experiment_id,
        model_id=model_id,
        kind="unreachable",
        reason="connection refused: \u0000, \u2028 and [bold]",
        attempt=attempt,
        attempts=12,
        next_in_seconds=None if attempt == 12 else 0.5,
    )


async def test_troubles_are_those_of_live_owners_as_each_said_last(
    store: Store, other_store: Store, clock: StoppedClock
) -> None:
    in_hand = [ModelInHand(ID, "m")]
    assert await store.troubles(ID) == []
    await store.heartbeat("dead", in_hand, [_trouble("m", 3)])
    clock.pass_by(DEAD_AFTER_SECONDS - 1)
    await store.heartbeat(A, in_hand, [_trouble("m"), _trouble("n", 12), _trouble("o", 1, "other")])
    await other_store.heartbeat(B, in_hand, [_trouble("m", 2)])
    assert sorted((each.model_id, each.attempt) for each in await store.troubles(ID)) == [
        ("m", 1),
        ("m", 2),
        ("m", 3),
        ("n", 12),
    ]
    clock.pass_by(2)
    await store.heartbeat(A, in_hand)
    assert await store.troubles(ID) == [_trouble("m", 2)]
    assert await store.models_in_hand(ID) == {"m": 2}
    await store.leave(B)
    assert await other_store.troubles(ID) == []
