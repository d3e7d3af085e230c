"""The mean of a model's runs, and the interval that covers the true one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.domain.aggregates.cell import MILLIONTHS
from socratic_bench.domain.aggregates.run_scores import VectorScores
from socratic_bench.domain.aggregates.statistics import clustered_estimate, figure_estimate
from socratic_bench.scoring.profile import OVERALL
from tests.benchmarks.drawn_tutors import EVEN, MRBENCH, Tutor
from tests.benchmarks.interval_coverage import (
    COMPOSITION,
    CONTINUOUS,
    Clusters,
    Condition,
    as_run_scores,
    false_differences,
    measure,
    measure_tutor,
    ours,
    plain,
)
from tests.unit.domain.aggregates.written_scores import V1, of_tutor

DRAWS = 1_000
TUTORS_DRAWN = 400
"""At 96 % and more, three standard errors below it are above 93 %."""

LONG = pytest.mark.long
SCORES = st.integers(0, MILLIONTHS).map(lambda score: score / MILLIONTHS)
CLUSTERS = st.lists(st.lists(SCORES, min_size=1, max_size=4), min_size=5, max_size=12)


def of_answers(*answers: float) -> Clusters:
    """One run in each scenario."""
    return [[answer] for answer in answers]


def test_the_interval_of_single_answers_is_wilsons_or_a_little_wider() -> None:
    # 80 of 100 by Wilson with z = 1.96 (Agresti and Coull 1998): 0.711 to 0.867. Student's t of 99
    # degrees, and G / (G - 1) in the variance, widen it a little. The room for three more scenarios
    # at 1 reaches to m + t * sqrt(kappa * V + beta * (1 - m)^2) = 0.878.
    low, high = ours(of_answers(*[1.0] * 80, *[0.0] * 20))

    room = 0.9423 * 0.001616 + 0.000277 * 0.04
    assert (low, high) == pytest.approx((0.711, 0.8 + 1.984 * room**0.5), abs=0.003)


def test_the_example_of_the_page_about_results_is_what_the_code_computes() -> None:
    scenarios = [[0.9, 0.8], [0.7, 0.9], [0.6, 0.6], [0.9, 1.0], [0.8, 0.8]]

    page = (Path(__file__).parents[4] / "docs" / "results.md").read_text()

    assert "0.9 0.8 · 0.7 0.9 · 0.6 0.6 · 0.9 1.0 · 0.8 0.8" in page
    assert "the interval is {:.2f} to {:.2f}.".format(*ours(scenarios)) in page


def test_the_page_about_results_says_how_many_answers_may_fail_that_all_ask() -> None:
    page = (Path(__file__).parents[4] / "docs" / "results.md").read_text()

    for scenarios in (5, 10, 15, 24, 40):
        low, _ = ours([[1.0] * 3] * scenarios)
        assert f"{scenarios} scenarios {100 * (1 - low):.0f} %" in page


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


TUTORS = st.lists(
    st.lists(st.tuples(SCORES, SCORES, st.sampled_from([0.0, 1.0])), min_size=1, max_size=3),
    min_size=5,
    max_size=9,
)


@given(TUTORS, st.randoms(use_true_random=False))
def test_overall_is_in_its_interval_whatever_the_order_of_scenarios(tutor, rng) -> None:
    scenarios = [" ".join(",".join(map(str, run)) for run in runs) for runs in tutor]
    found = figure_estimate(of_tutor(" | ".join(scenarios)), OVERALL, COMPOSITION)
    rng.shuffle(scenarios)
    shuffled = figure_estimate(of_tutor(" | ".join(scenarios)), OVERALL, COMPOSITION)

    assert found.mean is not None
    assert found.interval is not None
    low, high = found.interval
    assert 0.0 <= low <= found.mean <= high <= 1.0
    assert shuffled.mean == found.mean
    assert shuffled.interval == pytest.approx(found.interval, abs=1e-12)


@given(TUTORS, st.integers(1, 2))
def test_cells_that_were_merged_give_the_figures_of_their_rows(tutor, repeats: int) -> None:
    text = " | ".join(" ".join(",".join(map(str, run)) for run in runs) for runs in tutor)
    rows = of_tutor(" | ".join(" ".join([part] * repeats) for part in text.split(" | ")))
    merged: VectorScores[str] = VectorScores()
    for _ in range(repeats):
        merged.add(of_tutor(text))

    for figure in (OVERALL, *V1):
        one, other = (figure_estimate(each, figure, COMPOSITION) for each in (rows, merged))
        assert one == other


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
    assert measure(Condition(CONTINUOUS, scenarios, 3, mean, 0.3), DRAWS).coverage <= 0.99


@pytest.mark.parametrize(
    "tutor",
    [
        Tutor(EVEN, 15, 3, 0.01, "runs"),
        Tutor(EVEN, 15, 3, 0.15, "scenarios"),
        Tutor(MRBENCH, 15, 3, 0.5, 0.3),
        Tutor(EVEN, 15, 3, 0.1, 0.3, "interrogative"),
    ],
    ids=repr,
)
def test_an_interval_covers_tutors_whose_answers_seldom_fail(tutor: Tutor) -> None:
    # Without room for failures that no scenario showed, the first has 37 % and the second 90 %.
    assert measure_tutor(tutor, TUTORS_DRAWN).coverage >= 0.94


def test_the_room_for_failures_leaves_an_interval_that_says_something() -> None:
    even = measure_tutor(Tutor(EVEN, 15, 3, 0.01, "runs"), 100)
    good = measure_tutor(Tutor(MRBENCH, 15, 3, 0.5, 0.3), TUTORS_DRAWN)

    assert even.width < 0.08
    assert good.coverage < 0.985


@pytest.mark.parametrize("kind", [EVEN, MRBENCH])
def test_equal_tutors_that_seldom_fail_seldom_look_different(kind: str) -> None:
    assert false_differences(Tutor(kind, 15, 3, 0.02, "runs"), 100) <= 0.05


def test_a_plain_interval_near_the_end_of_the_scale_covers_too_seldom() -> None:
    condition = Condition("yes or no", 5, 3, 0.9, 0.3)

    assert measure(condition, DRAWS, plain).coverage < 0.85 < measure(condition, DRAWS).coverage
