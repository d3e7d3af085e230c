"""The mean of a model's runs, and the interval that covers the true one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.domain.aggregates.cell import MILLIONTHS
from socratic_bench.domain.aggregates.statistics import clustered_estimate
from tests.benchmarks.statistics.interval_coverage import (
    CONTINUOUS,
    Clusters,
    Condition,
    as_run_scores,
    measure,
    ours,
    plain,
)

DRAWS = 2_000
LONG = pytest.mark.long
SCORES = st.integers(0, MILLIONTHS).map(lambda score: score / MILLIONTHS)
CLUSTERS = st.lists(st.lists(SCORES, min_size=1, max_size=4), min_size=5, max_size=12)


def of_answers(*answers: float) -> Clusters:
    """One run in each scenario."""
    return [[answer] for answer in answers]


def test_the_interval_of_single_answers_is_wilsons() -> None:
    # 80 of 100 by Wilson with z = 1.96 (Agresti and Coull 1998): 0.711 to 0.867. Student's t of 99
    # degrees, and G / (G - 1) in the variance, widen it a little.
    low, high = ours(of_answers(*[1.0] * 80, *[0.0] * 20))

    assert (low, high) == pytest.approx((0.711, 0.867), abs=0.003)


def test_the_example_of_the_page_about_results_is_what_the_code_computes() -> None:
    scenarios = [[0.9, 0.8], [0.7, 0.9], [0.6, 0.6], [0.9, 1.0], [0.8, 0.8]]

    page = (Path(__file__).parents[4] / "docs" / "results.md").read_text()

    assert "0.9 0.8 · 0.7 0.9 · 0.6 0.6 · 0.9 1.0 · 0.8 0.8" in page
    assert "which is {:.2f} to {:.2f}.".format(*ours(scenarios)) in page


def test_scenarios_that_all_score_the_most_leave_room_for_others() -> None:
    low, high = ours(of_answers(*[1.0] * 5))

    assert high == 1.0
    assert low == pytest.approx(5 / (5 + 2.7764**2), abs=1e-3)  # Wilson, t of 4 degrees


def test_repeats_of_one_scenario_are_no_further_evidence() -> None:
    once = ours([[1.0], [1.0], [0.5], [0.0], [1.0], [0.5]])
    thrice = ours([[1.0] * 3, [1.0] * 3, [0.5] * 3, [0.0] * 3, [1.0] * 3, [0.5] * 3])

    assert thrice == pytest.approx(once)


def test_fewer_than_five_scenarios_have_no_interval() -> None:
    estimate = clustered_estimate(as_run_scores(of_answers(1.0, 0.5, 0.0, 1.0)))

    assert estimate.mean == 0.625
    assert estimate.interval is None


@given(CLUSTERS)
def test_the_interval_holds_the_mean_and_stays_on_the_scale(clusters: Clusters) -> None:
    estimate = clustered_estimate(as_run_scores(clusters))

    assert estimate.mean is not None
    assert estimate.interval is not None
    low, high = estimate.interval
    assert 0.0 <= low <= estimate.mean <= high <= 1.0


@given(CLUSTERS)
def test_turning_the_scale_round_turns_the_interval_round(clusters: Clusters) -> None:
    low, high = ours(clusters)
    turned = ours([[1 - score for score in cluster] for cluster in clusters])

    assert (1 - turned[1], 1 - turned[0]) == pytest.approx((low, high), abs=1e-9)


@pytest.mark.parametrize(
    "condition",
    [
        Condition("yes or no", 5, 3, 0.9, 0.3),
        Condition("yes or no", 15, 3, 0.9, 0.5),
        Condition("yes or no", 15, 5, 0.5, 0.3),
        Condition("thirds", 5, 3, 0.9, 0.3),
        Condition("thirds", 15, 1, 0.1, 0.3),
        Condition(CONTINUOUS, 5, 3, 0.9, 0.1),
        Condition(CONTINUOUS, 15, 3, 0.5, 0.5),
        pytest.param(Condition(CONTINUOUS, 45, 3, 0.05, 0.3, is_uneven=True), marks=LONG),
    ],
    ids=repr,
)
def test_at_least_93_of_100_intervals_cover(condition: Condition) -> None:
    assert measure(condition, DRAWS).coverage >= 0.93


@pytest.mark.parametrize("mean", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("scenarios", [5, 15, pytest.param(45, marks=LONG)])
def test_an_interval_of_continuous_scores_is_no_wider_than_it_must_be(
    scenarios: int, mean: float
) -> None:
    assert measure(Condition(CONTINUOUS, scenarios, 3, mean, 0.3), DRAWS).coverage <= 0.97


def test_a_plain_interval_near_the_end_of_the_scale_covers_too_seldom() -> None:
    condition = Condition("yes or no", 5, 3, 0.9, 0.3)

    assert measure(condition, DRAWS, plain).coverage < 0.85 < measure(condition, DRAWS).coverage
