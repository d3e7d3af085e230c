"""The store reserves the maximal cost of a call before the call, and never more than the budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.leasing import LeaseAnswer
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import Run
from socratic_bench.errors import StoreBroken, StoreError, StoreRefused, StoreUnavailable
from socratic_bench.ports.stores.leases import CallCount, CallEnd, Spending
from socratic_bench.ports.stores.store import Store
from tests.contract.store.facts import (
    StoppedClock,
    a_response,
    an_experiment,
    claim_of,
    record_unleased,
)

A, B = "runner-a", "runner-b"
BUDGET = 100
GRANTED, HELD, ANSWERED, OVER_BUDGET = (
    LeaseAnswer.GRANTED,
    LeaseAnswer.HELD,
    LeaseAnswer.ANSWERED,
    LeaseAnswer.OVER_BUDGET,
)
TOO_MUCH = 2**63
"""Nanodollars that no store can count."""


@pytest.fixture
async def experiment(store: Store) -> Experiment:
    return await store.register(an_experiment(budget=BUDGET))


@pytest.fixture
def runs(experiment: Experiment) -> list[Run]:
    return list(experiment.runs())


async def _take(
    store: Store, runs: Sequence[Run], reserves: Sequence[int], lease_id: str = "a1", owner: str = A
) -> list[LeaseAnswer]:
    claims = [claim_of(run, lease_id, reserve) for run, reserve in zip(runs, reserves, strict=True)]
    return list(await store.take_leases(claims, owner))


async def _end(store: Store, runs: Sequence[Run], lease_id: str = "a1", *, billed: bool) -> None:
    await store.end_calls([CallEnd(claim_of(run, lease_id).key, billed) for run in runs])


async def _give_back(store: Store, runs: Sequence[Run], lease_id: str = "a1") -> None:
    await store.give_back_leases([claim_of(run, lease_id).key for run in runs])


async def _spending(store: Store, run: Run) -> Spending:
    return replace(await store.spending(run.experiment_id), paid=0)


async def test_known_costs_and_those_of_adopted_answers_are_counted_apart(
    store: Store, runs: list[Run]
) -> None:
    await _take(store, runs[:3], [30, 30, 30])
    await store.record([a_response(runs[0], cost=11)], ["a1"])
    await _end(store, runs[1:2], billed=True)
    copy = a_response(runs[3], cost=7).model_copy(update={"adopted_from": "run-earlier"})
    for _ in range(2):
        await record_unleased(store, [copy])
    spending = await store.spending(runs[0].experiment_id)
    assert (spending.paid, spending.possibly_paid, spending.reused) == (11, 30, 7)
    assert (spending.committed, spending.in_flight) == (71, 30)


async def test_an_experiment_begins_with_its_budget_and_nothing_committed(
    store: Store, experiment: Experiment
) -> None:
    without = await store.register(an_experiment(occasion="no budget"))
    assert await store.spending(experiment.experiment_id) == Spending(100, 0, 0, False)
    assert await store.spending(without.experiment_id) == Spending(None, 0, 0, False)


async def test_the_spending_of_an_experiment_that_is_not_there_is_an_error(store: Store) -> None:
    with pytest.raises(StoreError, match="exp-unknown"):
        await store.spending("exp-unknown")


async def test_what_is_granted_is_committed_and_in_flight_until_the_lease_runs_out(
    store: Store, runs: list[Run], clock: StoppedClock
) -> None:
    assert await _take(store, runs[:2], [30, 70]) == [GRANTED, GRANTED]
    assert await _spending(store, runs[0]) == Spending(BUDGET, 100, 100, exhausted=False)
    clock.pass_by(60)
    assert await _spending(store, runs[0]) == Spending(BUDGET, 100, 100, exhausted=False)
    clock.pass_by(1)
    assert await _spending(store, runs[0]) == Spending(BUDGET, 100, 0, exhausted=False)


async def test_claims_are_served_in_their_order_as_far_as_the_budget_has_room_for_each(
    store: Store, runs: list[Run]
) -> None:
    order = [runs[number] for number in (3, 0, 2, 1, 4)]
    answers = await _take(store, order, [60, 41, 30, 0, 10])
    assert answers == [GRANTED, OVER_BUDGET, GRANTED, GRANTED, GRANTED]
    assert (await _spending(store, runs[0])).committed == 100
    assert await store.calls(runs[0].experiment_id) == CallCount(calls=4, turns=4)


async def test_each_budget_holds_for_the_claims_of_its_own_experiment(
    store: Store, runs: list[Run]
) -> None:
    tight = list((await store.register(an_experiment(occasion="tight", budget=10))).runs())
    free = list((await store.register(an_experiment(occasion="free"))).runs())
    mixed = [tight[0], runs[0], free[0], tight[1], runs[1], tight[2]]
    answers = await _take(store, mixed, [8, 60, 10**12, 8, 60, 2])
    assert answers == [GRANTED, GRANTED, GRANTED, OVER_BUDGET, OVER_BUDGET, GRANTED]
    for run, committed in ((tight[0], 10), (runs[0], 60), (free[0], 10**12)):
        assert (await _spending(store, run)).committed == committed
    await _end(store, mixed, billed=False)
    for run in mixed:
        assert (await _spending(store, run)).committed == 0


async def test_a_claim_that_is_repeated_needs_no_room_a_second_time(
    store: Store, other_store: Store, runs: list[Run]
) -> None:
    for each in (store, other_store, store):
        answers = await _take(each, runs[:3], [60, 30, 20])
        assert answers == [GRANTED, GRANTED, OVER_BUDGET]
        assert await _spending(store, runs[0]) == Spending(BUDGET, 90, 90, exhausted=False)
    assert await store.calls(runs[0].experiment_id) == CallCount(calls=2, turns=2)


async def test_a_call_without_a_price_is_granted_whatever_is_left(
    store: Store, runs: list[Run]
) -> None:
    await _take(store, runs[:1], [100])
    await store.register(an_experiment(budget=0))
    assert await _take(store, runs[1:3], [0, 1]) == [GRANTED, OVER_BUDGET]


async def test_without_a_budget_everything_is_granted_and_added_up(store: Store) -> None:
    runs = list((await store.register(an_experiment(occasion="no budget"))).runs())
    assert await _take(store, runs[:2], [10**15, 10**15]) == [GRANTED, GRANTED]
    assert await _spending(store, runs[0]) == Spending(None, 2 * 10**15, 2 * 10**15, False)


async def test_a_turn_that_another_holds_or_that_is_answered_takes_nothing_of_the_budget(
    store: Store, runs: list[Run]
) -> None:
    held, answered, free, over, *_ = runs
    await record_unleased(store, [a_response(answered, cost=0)])
    await _take(store, [held], [50])
    answers = await _take(store, [held, answered, free, over], [25, 25, 50, 1], "b1", B)
    assert answers == [HELD, ANSWERED, GRANTED, OVER_BUDGET]
    assert await _spending(store, held) == Spending(BUDGET, 100, 100, exhausted=False)


@pytest.mark.parametrize(("owner", "seconds"), [(A, 0), (B, 61)])
async def test_what_a_lease_that_is_taken_over_reserved_stays_committed_until_it_is_settled(
    store: Store, runs: list[Run], clock: StoppedClock, owner: str, seconds: int
) -> None:
    await _take(store, runs[:1], [40])
    clock.pass_by(seconds)
    assert await _take(store, runs[:1], [30], "second", owner) == [GRANTED]
    assert await _spending(store, runs[0]) == Spending(BUDGET, 70, 30, exhausted=False)
    for _ in range(2):
        await _end(store, runs[:1], billed=False)
        assert await _spending(store, runs[0]) == Spending(BUDGET, 30, 30, exhausted=False)


async def test_many_leases_of_a_turn_are_settled_each_by_itself_in_any_order(
    store: Store, runs: list[Run]
) -> None:
    for lease_id, reserve in (("a1", 1), ("a2", 10), ("a3", 20), ("a4", 30)):
        await _take(store, runs[:1], [reserve], lease_id)
    assert await _spending(store, runs[0]) == Spending(BUDGET, 61, 30, exhausted=False)
    await _end(store, runs[:1], "a2", billed=True)
    await _give_back(store, runs[:1], "a3")
    assert await _spending(store, runs[0]) == Spending(BUDGET, 41, 30, exhausted=False)
    for _ in range(2):
        await store.record([a_response(runs[0], cost=7)], ["a1"])
        assert await _spending(store, runs[0]) == Spending(BUDGET, 47, 30, exhausted=False)
    await store.record([a_response(runs[0], cost=4)], ["a4"])
    assert await _spending(store, runs[0]) == Spending(BUDGET, 21, 0, exhausted=False)
    assert await store.calls(runs[0].experiment_id) == CallCount(calls=3, turns=1)


async def test_a_reservation_is_replaced_by_what_the_response_cost(
    store: Store, runs: list[Run]
) -> None:
    await _take(store, runs[:3], [30, 30, 30])
    await store.record([a_response(runs[0], cost=12), a_response(runs[1], cost=0)], ["a1", "a1"])
    assert await _spending(store, runs[0]) == Spending(BUDGET, 42, 30, exhausted=False)


async def test_a_response_that_is_recorded_again_costs_nothing_again(
    store: Store, other_store: Store, runs: list[Run]
) -> None:
    responses = [a_response(run, cost=12) for run in runs[:2]]
    await _take(store, runs[:2], [30, 30])
    for each in (store, other_store, store):
        assert await each.record(responses + responses, ["a1"] * 4) == responses * 2
        assert await _spending(store, runs[0]) == Spending(BUDGET, 24, 0, exhausted=False)


async def test_a_response_that_is_not_stored_is_paid_for_all_the_same(
    store: Store, runs: list[Run]
) -> None:
    for lease_id in ("a1", "a2"):
        await _take(store, runs[:1], [30], lease_id)
    first, second = a_response(runs[0], "one", cost=12), a_response(runs[0], "two", cost=5)
    assert await store.record([second, first], ["a2", "a1"]) == [second, second]
    assert await _spending(store, runs[0]) == Spending(BUDGET, 17, 0, exhausted=False)


async def test_the_open_lease_of_another_stays_open_beside_a_stored_response(
    store: Store, runs: list[Run], clock: StoppedClock
) -> None:
    await _take(store, runs[:1], [30])
    clock.pass_by(61)
    await _take(store, runs[:1], [20], "b1", B)
    await store.record([a_response(runs[0], cost=12)], ["a1"])
    assert await _spending(store, runs[0]) == Spending(BUDGET, 32, 20, exhausted=False)
    await _give_back(store, runs[:1], "b1")
    assert await _spending(store, runs[0]) == Spending(BUDGET, 12, 0, exhausted=False)
    assert await store.calls(runs[0].experiment_id) == CallCount(calls=1, turns=1)


async def test_a_reservation_for_a_response_of_unknown_cost_stays_committed(
    store: Store, runs: list[Run]
) -> None:
    await _take(store, runs[:2], [30, 30])
    await store.record([a_response(runs[0], cost=None)], ["a1"])
    assert await _spending(store, runs[0]) == Spending(BUDGET, 60, 30, exhausted=False)
    await _end(store, runs[:1], billed=False)  # its lease is over
    assert (await _spending(store, runs[0])).committed == 60


async def test_a_response_without_a_lease_counts_with_its_cost_once(
    store: Store, other_store: Store, runs: list[Run]
) -> None:
    for each, cost in ((store, 12), (other_store, 12), (store, 25)):
        await record_unleased(each, [a_response(runs[0], cost=cost), a_response(runs[1], cost=5)])
        await each.record([a_response(runs[2], cost=cost)], ["unknown"])
    assert await _spending(store, runs[0]) == Spending(BUDGET, 29, 0, exhausted=False)


async def test_a_reply_that_comes_after_its_lease_ended_costs_what_it_cost(
    store: Store, runs: list[Run]
) -> None:
    await _take(store, runs[:1], [30])
    await _end(store, runs[:1], billed=False)
    for _ in range(2):
        await store.record([a_response(runs[0], cost=12)], ["a1"])
        assert await _spending(store, runs[0]) == Spending(BUDGET, 12, 0, exhausted=False)


async def test_responses_of_several_experiments_are_settled_each_with_its_own(
    store: Store, runs: list[Run]
) -> None:
    others = list((await store.register(an_experiment(occasion="other", budget=50))).runs())
    await _take(store, [runs[0], others[0]], [30, 40])
    responses = [a_response(others[0], cost=7), a_response(runs[0], cost=5)]
    await store.record(responses, ["a1", "a1"])
    assert (await _spending(store, runs[0])).committed == 5
    assert (await _spending(store, others[0])).committed == 7


async def test_what_a_call_that_ended_had_reserved_makes_room_once(
    store: Store, runs: list[Run]
) -> None:
    await _take(store, runs[:2], [60, 40])
    for _ in range(2):
        await _end(store, runs[:1] * 2, billed=False)
        assert await _spending(store, runs[0]) == Spending(BUDGET, 40, 40, exhausted=False)
    assert await _take(store, runs[:1], [60], "b1", B) == [GRANTED]


async def test_what_may_be_billed_stays_committed_and_is_not_in_flight(
    store: Store, runs: list[Run]
) -> None:
    await _take(store, runs[:2], [60, 40])
    await _end(store, runs[:1], billed=True)
    await _end(store, runs[:1], billed=False)
    assert await _spending(store, runs[0]) == Spending(BUDGET, 100, 40, exhausted=False)


async def test_what_was_reserved_under_a_lease_that_is_given_back_is_free_again(
    store: Store, runs: list[Run]
) -> None:
    await _take(store, runs[:2], [60, 40])
    for _ in range(2):
        await _give_back(store, runs[:1])
        assert await _spending(store, runs[0]) == Spending(BUDGET, 40, 40, exhausted=False)
    assert await _take(store, runs[2:3], [60], "b1", B) == [GRANTED]


async def test_ending_what_is_not_there_does_nothing(store: Store, runs: list[Run]) -> None:
    await _take(store, runs[:1], [40])
    await _end(store, runs, "unknown", billed=False)
    await _give_back(store, runs, "")
    unknown = claim_of(runs[0], "a1").key._replace(experiment_id="exp-unknown")
    await store.give_back_leases([unknown])
    assert await _spending(store, runs[0]) == Spending(BUDGET, 40, 40, exhausted=False)


async def test_registering_again_brings_the_budget_up_to_date_and_keeps_what_is_committed(
    store: Store, runs: list[Run]
) -> None:
    await _take(store, runs[:1], [40])
    for budget in (150, 30, None, 70):
        stored = await store.register(an_experiment(budget=budget))
        assert stored.manifest.budget == an_experiment(budget=budget).manifest.budget
        assert await _spending(store, runs[0]) == Spending(budget, 40, 40, exhausted=False)
    assert await _take(store, runs[1:2], [31]) == [OVER_BUDGET]
    assert await _take(store, runs[1:2], [30]) == [GRANTED]


@pytest.mark.parametrize(
    ("budget", "exhausted"), [(100, True), (99, True), (101, False), (None, False)]
)
async def test_an_exhausted_budget_is_so_until_it_is_raised_or_taken_away(
    store: Store, experiment: Experiment, budget: int | None, exhausted: bool
) -> None:
    await store.exhaust(experiment.experiment_id, BUDGET + 1)
    assert (await store.spending(experiment.experiment_id)).exhausted is True
    await store.register(an_experiment(budget=budget))
    assert await store.spending(experiment.experiment_id) == Spending(budget, 0, 0, exhausted)


async def test_a_budget_with_room_for_the_call_is_not_exhausted(
    store: Store, runs: list[Run]
) -> None:
    await _take(store, runs[:1], [40])
    await store.exhaust(runs[0].experiment_id, 60)
    assert not (await _spending(store, runs[0])).exhausted
    await store.exhaust(runs[0].experiment_id, 61)
    assert (await _spending(store, runs[0])).exhausted


async def test_what_has_no_budget_cannot_be_exhausted(store: Store) -> None:
    without = await store.register(an_experiment())
    await store.exhaust(without.experiment_id, 10)
    await store.exhaust("exp-unknown", 10)
    assert not (await store.spending(without.experiment_id)).exhausted


async def test_a_budget_holds_for_batches_of_any_size(store: Store) -> None:
    experiment = await store.register(an_experiment(models=5, repeats=100, budget=2_000))
    runs = list(experiment.runs())
    answers = await _take(store, runs, [2] * len(runs))
    assert answers == [GRANTED] * 1_000 + [OVER_BUDGET] * 500
    await _end(store, runs[:600], billed=False)
    await store.record([a_response(run, cost=1) for run in runs[600:]], ["a1"] * 900)
    assert await _spending(store, runs[0]) == Spending(2_000, 900, 0, exhausted=False)


def _unchecked(run: Run, cost: int) -> Response:
    """A response with a cost that no event may have."""
    return a_response(run).model_copy(update={"cost_nanodollars": cost})


async def test_a_number_that_no_store_can_count_is_refused_for_good_and_changes_nothing(
    store: Store, runs: list[Run]
) -> None:
    await store.register(an_experiment())
    await _take(store, runs[:1], [10])
    for work in (
        _take(store, runs[1:2], [TOO_MUCH]),
        _take(store, runs[1:2], [TOO_MUCH - 1]),
        store.record([_unchecked(runs[0], TOO_MUCH)], ["a1"]),
        record_unleased(store, [_unchecked(runs[2], TOO_MUCH - 1)]),
    ):
        with pytest.raises(StoreRefused) as refused:
            await work
        assert not isinstance(refused.value, StoreBroken | StoreUnavailable)
    assert await _spending(store, runs[0]) == Spending(None, 10, 10, exhausted=False)
    assert await store.responses([run.run_id for run in runs]) == {}
