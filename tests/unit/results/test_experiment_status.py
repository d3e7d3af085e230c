"""The progress, the cost and the lateness of an experiment."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from socratic_bench.domain.experiment.manifest import Experiment, TutorModel
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.domain.money import Price
from socratic_bench.ports.stores.experiments import Progress
from socratic_bench.ports.stores.leases import Spending
from socratic_bench.results.costs import SpendingFigures
from socratic_bench.results.experiment_status import (
    ExperimentStatus,
    State,
    model_progress,
)
from tests.contract.store.facts import (
    MINUTE,
    MONDAY,
    a_failure,
    a_response,
    a_score,
    an_experiment,
    record_unleased,
)


def due_in(hours: float, experiment: Experiment) -> Experiment:
    manifest = experiment.manifest.model_copy(update={"deadline_hours": hours})
    return experiment.model_copy(update={"manifest": manifest})


PLANNED = due_in(2, an_experiment())
DEADLINE = MONDAY + timedelta(hours=2)


def test_the_deadline_counts_from_the_creation():
    assert PLANNED.deadline_at == DEADLINE


@pytest.mark.parametrize(
    ("stored", "completed_at", "state"),
    [
        (ExperimentState.PAUSED, None, State.PAUSED),
        (ExperimentState.CANCELLED, None, State.CANCELLED),
        (ExperimentState.RESUMED, None, State.OVERDUE),
        (ExperimentState.PAUSED, MONDAY, State.COMPLETE),
        (ExperimentState.CANCELLED, MONDAY, State.COMPLETE),
    ],
)
def test_a_stopped_experiment_is_neither_overdue_nor_out_of_budget(stored, completed_at, state):
    stopped = PLANNED.model_copy(update={"state": stored, "completed_at": completed_at})
    spending = NOTHING_SPENT if state is State.OVERDUE else EXHAUSTED
    status = ExperimentStatus.at(
        DEADLINE, ExperimentOutline.of(stopped), Progress(12, 3, 0), spending
    )
    assert status.state == state


NOTHING_SPENT = Spending(budget=None, committed=0, in_flight=0, exhausted=False)
EXHAUSTED = Spending(budget=10, committed=9, in_flight=0, exhausted=True)
PRICE = Price(input_per_million=Decimal(3), output_per_million=Decimal(15))


def priced(experiment: Experiment, *prices: Price | None) -> Experiment:
    """The experiment, its models with these prices."""
    models = tuple(
        model.model_copy(update={"price": price})
        for model, price in zip(experiment.manifest.models, prices, strict=True)
    )
    manifest = experiment.manifest.model_copy(update={"models": models})
    return experiment.model_copy(update={"manifest": manifest})


@pytest.mark.parametrize(
    ("now", "done", "spending", "state"),
    [
        (MONDAY, 0, NOTHING_SPENT, State.RUNNING),
        (DEADLINE - MINUTE, 11, NOTHING_SPENT, State.RUNNING),
        (DEADLINE, 11, NOTHING_SPENT, State.OVERDUE),
        (DEADLINE + MINUTE, 0, NOTHING_SPENT, State.OVERDUE),
        (MONDAY, 12, NOTHING_SPENT, State.COMPLETE),
        (DEADLINE + MINUTE, 12, NOTHING_SPENT, State.COMPLETE),
        (MONDAY, 11, EXHAUSTED, State.OUT_OF_BUDGET),
        (DEADLINE + MINUTE, 11, EXHAUSTED, State.OUT_OF_BUDGET),
        (MONDAY, 12, EXHAUSTED, State.COMPLETE),
    ],
)
def test_an_experiment_is_overdue_or_out_of_budget_only_while_runs_are_left(
    now, done, spending, state
):
    completed_at = MONDAY if done == 12 else None
    planned = PLANNED.model_copy(update={"completed_at": completed_at})
    outline = ExperimentOutline.of(planned)
    status = ExperimentStatus.at(now, outline, Progress(planned=12, done=done, failed=0), spending)
    assert (status.state, status.left) == (state, 12 - done)


def test_an_experiment_is_not_complete_before_the_store_says_so():
    done = Progress(planned=12, done=12, failed=0)
    status = ExperimentStatus.at(MONDAY, ExperimentOutline.of(PLANNED), done, NOTHING_SPENT)
    assert (status.state, status.left) == (State.RUNNING, 0)


def test_what_was_paid_may_have_been_paid_is_under_way_and_was_reused_is_told_apart():
    spending = Spending(2_000_000_000, 750_000_001, 250_000_000, False, 190_000_000, 580_000_000)
    figures = SpendingFigures.of(
        spending, has_prices=priced(PLANNED, PRICE, None).manifest.has_prices
    )
    assert (figures.paid_usd, figures.possibly_paid_usd) == (0.19, 0.310000001)
    assert (figures.budget_usd, figures.in_flight_usd, figures.reused_usd) == (2, 0.25, 0.58)
    assert figures.told == (
        "paid $0.1900, up to $0.3100 more for calls of unknown cost, up to $0.2500 more for calls "
        "in flight; $0.5800 reused"
    )
    two = SpendingFigures.of(spending, spending, has_prices=True)
    assert (two.budget_usd, two.paid_usd, two.reused_usd) == (None, 0.38, 1.16)


def test_the_cost_of_a_reference_tutor_is_told_to_be_simulated():
    planned = priced(PLANNED, PRICE, None)
    simulated = "paid $0.00, simulated where reference tutors have prices"
    assert SpendingFigures.in_plan(NOTHING_SPENT, planned.manifest).told == simulated
    outline = ExperimentOutline.of(planned)
    status = ExperimentStatus.at(MONDAY, outline, Progress(12, 0, 0), NOTHING_SPENT)
    assert status.spending.told == simulated
    real = TutorModel(id="openai/gpt-x", price=PRICE)
    plan = planned.manifest.model_copy(update={"models": (real, PLANNED.manifest.models[0])})
    assert "simulated" not in SpendingFigures.in_plan(NOTHING_SPENT, plan).told


def test_without_any_price_what_was_spent_is_unknown_and_not_zero():
    figures = SpendingFigures.of(NOTHING_SPENT, has_prices=PLANNED.manifest.has_prices)
    assert (figures.paid_usd, figures.possibly_paid_usd, figures.in_flight_usd) == (None,) * 3
    assert (figures.budget_usd, figures.reused_usd, figures.is_known) == (None, 0, False)


async def test_registering_again_puts_the_deadline_off_and_keeps_the_id(store):
    await store.register(PLANNED)
    later = due_in(3, PLANNED).model_copy(update={"created_at": MONDAY + 30 * MINUTE})
    assert later.experiment_id == PLANNED.experiment_id

    stored = await store.register(later)

    assert stored.deadline_at == MONDAY + timedelta(hours=3)
    assert [stored] == list(await store.experiments())


async def test_progress_by_model_adds_up_to_the_progress_of_the_experiment(store):
    await store.register(PLANNED)
    first, second, third, fourth, *_ = PLANNED.runs()
    await store.fold(
        [a_score(first), a_score(third), a_score(fourth, profile="other-v1")], [a_failure(second)]
    )

    models = await model_progress(store, PLANNED)

    assert [(each.model_id, each.planned, each.done, each.failed) for each in models] == [
        ("reference/tutor-0", 6, 2, 0),
        ("reference/tutor-1", 6, 1, 1),
    ]


async def test_each_model_has_its_known_cost_and_the_share_that_is_known(store):
    await store.register(PLANNED)
    first, second, third, _, fifth, *_ = PLANNED.runs()
    assert {run.model_id for run in (first, third, fifth)} == {"reference/tutor-0"}
    await store.fold([a_score(first), a_score(third)], [a_failure(second), a_failure(fifth)])

    priced_model, unpriced_model = await model_progress(store, PLANNED)

    assert priced_model.total_cost_usd == 2 * 0.000021
    assert priced_model.cost_known == 2 / 3
    assert (unpriced_model.total_cost_usd, unpriced_model.cost_known) == (None, 0.0)


async def test_each_failed_run_counts_under_what_it_failed_for_at_last(store):
    await store.register(PLANNED)
    first, second, third, fourth, fifth, sixth, *_ = PLANNED.runs()
    kinds = [(first, "timeout"), (third, "auth"), (fifth, "auth"), (second, "timeout")]
    failures = [a_failure(run).model_copy(update={"kind": kind}) for run, kind in kinds]
    later = a_failure(second, turn=2).model_copy(update={"kind": "overloaded"})
    other = a_failure(sixth, profile="other-v1")
    await store.fold((), [*failures, later, other, a_failure(fourth)])
    await record_unleased(store, [a_response(fourth)])
    await store.fold([a_score(fourth)], ())

    models = await model_progress(store, PLANNED)

    assert [each.failures for each in models] == [{"auth": 2, "timeout": 1}, {"overloaded": 1}]
    assert [list(each.failures) for each in models] == [["auth", "timeout"], ["overloaded"]]
    assert [each.failed for each in models] == [3, 1]
