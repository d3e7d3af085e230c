"""What calls may cost is reserved before they are made, and never more than the budget."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pytest

from socratic_bench.domain.manifest import Experiment
from socratic_bench.domain.run import Run
from socratic_bench.errors import StoreError
from socratic_bench.ports.store import CallCount, Claim, Leases, Spending, Store, TurnKey
from tests.contract.store.facts import MINUTE, MONDAY, a_response, an_experiment

A, B = "runner-a", "runner-b"
BUDGET = 100
LATER = MONDAY + 2 * MINUTE
"""When leases taken on MONDAY have run out."""


@pytest.fixture
async def experiment(store: Store) -> Experiment:
    return await store.register(an_experiment(budget=BUDGET))


@pytest.fixture
def runs(experiment: Experiment) -> list[Run]:
    return list(experiment.runs())


def _turn(run: Run) -> TurnKey:
    return TurnKey(run.run_id, 1)


async def _lease(
    store: Store,
    runs: Sequence[Run],
    reserves: Sequence[int],
    owner: str = A,
    now: datetime = MONDAY,
) -> Leases:
    claims = [Claim(_turn(run), reserve) for run, reserve in zip(runs, reserves, strict=True)]
    return await store.lease(runs[0].experiment_id, claims, owner, now, now + MINUTE)


async def _spending(store: Store, run: Run, now: datetime = MONDAY) -> Spending:
    return await store.spending(run.experiment_id, now)


async def test_an_experiment_begins_with_its_budget_and_nothing_committed(
    store: Store, experiment: Experiment
) -> None:
    without = await store.register(an_experiment(occasion="no budget"))
    assert await store.spending(experiment.experiment_id, MONDAY) == Spending(100, 0, 0, False)
    assert await store.spending(without.experiment_id, MONDAY) == Spending(None, 0, 0, False)


async def test_the_spending_of_an_experiment_that_is_not_there_is_an_error(store: Store) -> None:
    with pytest.raises(StoreError, match="exp-unknown"):
        await store.spending("exp-unknown", MONDAY)


async def test_what_is_granted_is_committed_and_in_flight_until_the_lease_runs_out(
    store: Store, runs: list[Run]
) -> None:
    leases = await _lease(store, runs[:2], [30, 70])
    assert leases == Leases(frozenset(map(_turn, runs[:2])), frozenset())
    assert await _spending(store, runs[0]) == Spending(BUDGET, 100, 100, exhausted=False)
    assert await _spending(store, runs[0], MONDAY + MINUTE) == Spending(BUDGET, 100, 100, False)
    assert await _spending(store, runs[0], LATER) == Spending(BUDGET, 100, 0, exhausted=False)


async def test_claims_are_served_in_their_order_as_far_as_the_budget_has_room_for_each(
    store: Store, runs: list[Run]
) -> None:
    order = [runs[number] for number in (3, 0, 2, 1, 4)]
    leases = await _lease(store, order, [60, 41, 30, 0, 10])
    assert leases.granted == {_turn(runs[number]) for number in (3, 2, 1, 4)}
    assert leases.over_budget == {_turn(runs[0])}
    assert (await _spending(store, runs[0])).committed == 100
    assert await store.calls(runs[0].experiment_id) == CallCount(calls=4, turns=4)


async def test_a_call_without_a_price_is_granted_whatever_is_left(
    store: Store, runs: list[Run]
) -> None:
    await _lease(store, runs[:1], [100])
    await store.register(an_experiment(budget=0))
    leases = await _lease(store, runs[1:3], [0, 1])
    assert leases == Leases(frozenset({_turn(runs[1])}), frozenset({_turn(runs[2])}))


async def test_without_a_budget_everything_is_granted_and_added_up(store: Store) -> None:
    runs = list((await store.register(an_experiment(occasion="no budget"))).runs())
    leases = await _lease(store, runs[:2], [10**15, 10**15])
    assert len(leases.granted) == 2
    assert await _spending(store, runs[0]) == Spending(None, 2 * 10**15, 2 * 10**15, False)


async def test_a_turn_that_another_holds_or_that_is_answered_is_not_over_budget(
    store: Store, runs: list[Run]
) -> None:
    held, answered, free, *_ = runs
    await store.record([a_response(answered, cost=0)])
    await _lease(store, [held], [60], A)
    leases = await _lease(store, [held, answered, free], [60, 60, 60], B)
    assert leases == Leases(frozenset(), frozenset({_turn(free)}))


async def test_nothing_is_reserved_for_a_turn_that_is_not_granted(
    store: Store, runs: list[Run]
) -> None:
    held, answered, free, *_ = runs
    await store.record([a_response(answered, cost=0)])
    await _lease(store, [held], [50], A)
    leases = await _lease(store, [held, answered, free], [25, 25, 50], B)
    assert leases == Leases(frozenset({_turn(free)}), frozenset())
    assert await _spending(store, held) == Spending(BUDGET, 100, 100, exhausted=False)


@pytest.mark.parametrize(("owner", "now"), [(A, MONDAY), (B, LATER)])
async def test_what_an_earlier_lease_of_a_turn_reserved_stays_committed(
    store: Store, runs: list[Run], owner: str, now: datetime
) -> None:
    await _lease(store, runs[:1], [40], A)
    assert (await _lease(store, runs[:1], [30], owner, now)).granted == {_turn(runs[0])}
    assert await _spending(store, runs[0], now) == Spending(BUDGET, 70, 30, exhausted=False)


async def test_a_reservation_is_replaced_by_what_the_response_cost(
    store: Store, runs: list[Run]
) -> None:
    await _lease(store, runs[:3], [30, 30, 30])
    await store.record([a_response(runs[0], cost=12), a_response(runs[1], cost=0)])
    assert await _spending(store, runs[0]) == Spending(BUDGET, 42, 30, exhausted=False)


async def test_a_reservation_for_a_response_of_unknown_cost_stays_committed(
    store: Store, runs: list[Run]
) -> None:
    await _lease(store, runs[:2], [30, 30])
    await store.record([a_response(runs[0], cost=None)])
    assert await _spending(store, runs[0]) == Spending(BUDGET, 60, 30, exhausted=False)
    await store.release(runs[0].experiment_id, [_turn(runs[0])], A)  # its lease is over
    assert (await _spending(store, runs[0])).committed == 60


async def test_a_response_counts_with_its_cost_once_and_though_nothing_was_reserved(
    store: Store, other_store: Store, runs: list[Run]
) -> None:
    await _lease(store, runs[:1], [30])
    for each, cost in ((store, 12), (other_store, 12), (store, 25)):
        await each.record([a_response(runs[0], cost=cost), a_response(runs[1], cost=5)])
    assert await _spending(store, runs[0]) == Spending(BUDGET, 17, 0, exhausted=False)


async def test_responses_of_several_experiments_are_settled_each_with_its_own(
    store: Store, runs: list[Run]
) -> None:
    others = list((await store.register(an_experiment(occasion="other", budget=50))).runs())
    await _lease(store, runs[:1], [30])
    await _lease(store, others[:1], [40])
    await store.record([a_response(others[0], cost=7), a_response(runs[0], cost=5)])
    assert (await _spending(store, runs[0])).committed == 5
    assert (await _spending(store, others[0])).committed == 7


async def test_a_reservation_that_is_released_makes_room_and_the_lease_stays(
    store: Store, runs: list[Run]
) -> None:
    await _lease(store, runs[:2], [60, 40])
    await store.release(runs[0].experiment_id, [_turn(runs[0])], A)
    assert await _spending(store, runs[0]) == Spending(BUDGET, 40, 40, exhausted=False)
    assert (await _lease(store, runs[:1], [60], B)) == Leases(frozenset(), frozenset())
    assert (await _lease(store, runs[:1], [60], A)).granted == {_turn(runs[0])}


async def test_releasing_twice_releases_once(store: Store, runs: list[Run]) -> None:
    await _lease(store, runs[:2], [60, 40])
    for _ in range(2):
        await store.release(runs[0].experiment_id, [_turn(runs[0])] * 2, A)
    assert (await _spending(store, runs[0])).committed == 40


async def test_what_was_perhaps_paid_stays_committed_and_is_not_in_flight(
    store: Store, runs: list[Run]
) -> None:
    await _lease(store, runs[:2], [60, 40])
    await store.release(runs[0].experiment_id, [_turn(runs[0])], A, paid=True)
    await store.release(runs[0].experiment_id, [_turn(runs[0])], A)
    assert await _spending(store, runs[0]) == Spending(BUDGET, 100, 40, exhausted=False)


async def test_only_the_holder_of_a_turn_can_release_it(store: Store, runs: list[Run]) -> None:
    await _lease(store, runs[:1], [40], A)
    await store.release(runs[0].experiment_id, [_turn(run) for run in runs], B)
    assert (await _spending(store, runs[0])).committed == 40
    await _lease(store, runs[:1], [40], B, LATER)
    await store.release(runs[0].experiment_id, [_turn(runs[0])], A)
    assert await _spending(store, runs[0], LATER) == Spending(BUDGET, 80, 40, exhausted=False)


async def test_what_was_reserved_under_a_lease_that_is_given_back_is_free_again(
    store: Store, runs: list[Run]
) -> None:
    await _lease(store, runs[:2], [60, 40])
    for _ in range(2):
        await store.give_back(runs[0].experiment_id, [_turn(runs[0])], A)
    assert await _spending(store, runs[0]) == Spending(BUDGET, 40, 40, exhausted=False)
    assert (await _lease(store, runs[2:3], [60], B)).granted == {_turn(runs[2])}


async def test_releasing_nothing_does_nothing(store: Store, runs: list[Run]) -> None:
    await store.release(runs[0].experiment_id, [], A)
    await store.release("exp-unknown", [_turn(runs[0])], A)
    assert (await _spending(store, runs[0])).committed == 0


async def test_registering_again_brings_the_budget_up_to_date_and_keeps_what_is_committed(
    store: Store, runs: list[Run]
) -> None:
    await _lease(store, runs[:1], [40])
    for budget in (150, 30, None, 70):
        stored = await store.register(an_experiment(budget=budget))
        assert stored.manifest.budget == an_experiment(budget=budget).manifest.budget
        assert await _spending(store, runs[0]) == Spending(budget, 40, 40, exhausted=False)
    assert (await _lease(store, runs[1:2], [31])).over_budget == {_turn(runs[1])}
    assert (await _lease(store, runs[1:2], [30])).granted == {_turn(runs[1])}


@pytest.mark.parametrize(
    ("budget", "exhausted"), [(100, True), (99, True), (101, False), (None, False)]
)
async def test_an_exhausted_budget_is_so_until_it_is_raised_or_taken_away(
    store: Store, experiment: Experiment, budget: int | None, exhausted: bool
) -> None:
    await store.exhaust(experiment.experiment_id)
    assert (await store.spending(experiment.experiment_id, MONDAY)).exhausted is True
    await store.register(an_experiment(budget=budget))
    spending = await store.spending(experiment.experiment_id, MONDAY)
    assert spending == Spending(budget, 0, 0, exhausted)


async def test_what_has_no_budget_cannot_be_exhausted(store: Store) -> None:
    without = await store.register(an_experiment())
    await store.exhaust(without.experiment_id)
    await store.exhaust("exp-unknown")
    assert not (await store.spending(without.experiment_id, MONDAY)).exhausted


async def test_a_budget_holds_for_batches_of_any_size(store: Store) -> None:
    experiment = await store.register(an_experiment(models=5, repeats=100, budget=2_000))
    runs = list(experiment.runs())
    leases = await _lease(store, runs, [2] * len(runs))
    assert leases.granted == set(map(_turn, runs[:1_000]))
    assert leases.over_budget == set(map(_turn, runs[1_000:]))
    await store.release(experiment.experiment_id, list(map(_turn, runs[:600])), A)
    await store.record([a_response(run, cost=1) for run in runs[600:]])
    assert await _spending(store, runs[0]) == Spending(2_000, 900, 0, exhausted=False)
