"""The points of both sides of a date are the units, and a series says which step it would show."""

from __future__ import annotations

import random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from socratic_bench.domain.aggregates.level_difference import (
    FEWEST_POINTS,
    level_difference,
    minimal_detectable_change,
)

SCORES = st.integers(0, 1_000).map(lambda each: each / 1_000)
SIDE = st.lists(SCORES, min_size=2, max_size=8)


# SciPy warns of a side without any spread, and computes the right figures.
@pytest.mark.filterwarnings("ignore:Precision loss occurred in moment calculation")
@given(SIDE, SIDE)
def test_two_sides_are_tested_by_students_t(before: list[float], after: list[float]) -> None:
    found = level_difference(before, after)

    assert found is not None
    if found.interval is None:
        assert len(set(before)) == len(set(after)) == 1
        return
    expected = stats.ttest_ind(after, before)
    assert found.p_value == pytest.approx(expected.pvalue, abs=1e-9)
    assert found.interval == pytest.approx(tuple(expected.confidence_interval()), abs=1e-9)


def test_a_worked_difference() -> None:
    found = level_difference([0.80, 0.82, 0.81], [0.74, 0.76])

    assert found is not None
    assert found.difference == pytest.approx(-0.06)
    assert found.interval == pytest.approx((-0.0935, -0.0265), abs=1e-4)
    assert found.p_value == pytest.approx(0.0107, abs=1e-4)
    assert found.is_real


def test_one_point_is_no_side() -> None:
    assert level_difference([0.8, 0.8, 0.8], [0.5]) is None
    assert level_difference([], [0.5, 0.6]) is None


def test_sides_without_any_spread_count_orders() -> None:
    small, large = level_difference([0.8] * 2, [0.5] * 2), level_difference([0.8] * 5, [0.5] * 5)

    assert small is not None
    assert large is not None
    assert small.interval is None
    assert small.p_value == pytest.approx(2 / 6)
    assert large.p_value == pytest.approx(2 / 252)


def test_a_worked_minimal_detectable_change() -> None:
    # s^2 = (.02^2 + .04^2 + .02^2) / 6 = .0004; t of 2 degrees: 4.3027 and 1.0607; halves of two.
    found = minimal_detectable_change([0.80, 0.82, 0.78, 0.80])

    assert found == pytest.approx((4.3027 + 1.0607) * 0.02, abs=1e-5)


def test_a_step_hardly_enlarges_the_minimal_detectable_change() -> None:
    rng = random.Random(2)
    level = [rng.gauss(0.6, 0.02) for _ in range(26)]
    stepped = [each + 0.1 * (week >= 13) for week, each in enumerate(level)]

    plain, with_step = minimal_detectable_change(level), minimal_detectable_change(stepped)
    assert plain is not None
    assert with_step is not None
    assert plain < with_step < 1.6 * plain


@pytest.mark.parametrize("points", [8, 12, 26])
def test_a_step_of_this_size_is_found_in_four_of_five_series(points: int) -> None:
    rng = random.Random(points)
    half, spread = points // 2, 0.02
    t = [stats.t.ppf(each, points - 2) for each in (0.975, 0.8)]
    step = sum(t) * spread * (1 / half + 1 / (points - half)) ** 0.5
    found = []
    for _ in range(1_000):
        values = [rng.gauss(0.6, spread) + step * (week >= half) for week in range(points)]
        difference = level_difference(values[:half], values[half:])
        found.append(difference is not None and difference.is_real)

    assert fmean(found) == pytest.approx(0.8, abs=0.04)


def test_few_or_equal_points_tell_of_no_detectable_change() -> None:
    assert minimal_detectable_change([0.5, 0.6, 0.7][: FEWEST_POINTS - 1]) is None
    assert minimal_detectable_change([0.5] * 9) is None
