"""A series has a trend only where chance would seldom order its points so."""

from __future__ import annotations

import random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from socratic_bench.domain.aggregates.trend import FEWEST_POINTS, mann_kendall, trend

DISTINCT = st.lists(st.integers(0, 10**6), min_size=3, max_size=20, unique=True)


@given(DISTINCT)
def test_the_p_value_of_distinct_values_is_kendalls_exact_one(values: list[int]) -> None:
    expected = stats.kendalltau(range(len(values)), values, method="exact").pvalue

    assert mann_kendall(values) == pytest.approx(expected, abs=1e-9)


@given(st.lists(st.integers(0, 3), min_size=10, max_size=40))
def test_with_ties_the_correction_for_continuity_makes_it_a_little_more_careful(
    values: list[int],
) -> None:
    found = mann_kendall(values)
    if len(set(values)) == 1:
        assert found == 1.0
    else:
        plain = stats.kendalltau(range(len(values)), values, method="asymptotic").pvalue
        assert plain - 1e-9 <= found <= plain + 0.12


@given(DISTINCT, st.data())
def test_the_slope_is_that_of_theil_and_sen(values: list[int], data: st.DataObject) -> None:
    if len(values) < FEWEST_POINTS:
        assert trend(range(len(values)), values) is None
        return
    gaps = data.draw(st.lists(st.integers(1, 5), min_size=len(values), max_size=len(values)))
    times = [float(sum(gaps[:place])) for place in range(len(values))]

    found = trend(times, values)

    assert found is not None
    assert found.slope == pytest.approx(stats.theilslopes(values, times).slope)


def test_five_points_in_order_are_a_trend_and_four_of_them_are_not() -> None:
    rising = trend(range(5), [0.5, 0.52, 0.53, 0.6, 0.61])
    mixed = trend(range(5), [0.5, 0.52, 0.51, 0.6, 0.58])

    assert rising is not None
    assert rising.is_real
    assert rising.p_value == pytest.approx(2 / 120)
    assert mixed is not None
    assert not mixed.is_real


@pytest.mark.parametrize("points", [5, 9, 26])
def test_noise_alone_has_a_trend_in_at_most_one_of_twenty_series(points: int) -> None:
    rng = random.Random(points)
    series = [[round(rng.gauss(0.6, 0.05), 3) for _ in range(points)] for _ in range(1_000)]

    assert fmean(mann_kendall(values) <= 0.05 for values in series) <= 0.065


def test_the_exact_p_value_of_two_years_of_weeks_is_one_of_a_probability() -> None:
    weeks = random.Random(7).sample(range(10**6), 104)

    assert mann_kendall(sorted(weeks)) == pytest.approx(0, abs=1e-100)
    assert mann_kendall(weeks) == pytest.approx(
        stats.kendalltau(range(104), weeks, method="exact").pvalue
    )
