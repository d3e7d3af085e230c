"""A series has a change point only where chance would seldom part its points so."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import permutations
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from socratic_bench.domain.aggregates.change_point import (
    FEWEST_A_SIDE,
    FEWEST_POINTS,
    ChangePoint,
    change_point,
)

SCORES = st.integers(0, 1_000).map(lambda each: each / 1_000)
SERIES = st.lists(SCORES, min_size=FEWEST_POINTS, max_size=12)


def found(values: list[float]) -> ChangePoint:
    point = change_point(values)
    assert point is not None
    return point


def statistic(values: tuple[float, ...]) -> float:
    """The largest standardised difference of means, from its definition."""
    count = len(values)
    return max(
        abs(fmean(values[split:]) - fmean(values[:split])) / math.sqrt(1 / split + 1 / later)
        for split in range(FEWEST_A_SIDE, count - FEWEST_A_SIDE + 1)
        for later in [count - split]
    )


def test_a_step_is_found_with_its_place_size_and_interval() -> None:
    step = found([0.81, 0.79, 0.80, 0.82, 0.80, 0.71, 0.70, 0.72, 0.69])

    assert step.before == 5
    assert step.difference == pytest.approx(0.705 - 0.804)
    assert step.is_real
    assert (step.earliest, step.latest) == (5, 5)


def test_a_blurred_step_has_a_wide_interval() -> None:
    step = found([0.80, 0.79, 0.81, 0.80, 0.76, 0.75, 0.71, 0.70, 0.72, 0.71])

    assert step.is_real
    assert (step.earliest, step.before, step.latest) == (4, 5, 6)


def test_the_p_value_is_nearly_that_of_all_orders() -> None:
    values = (0.62, 0.60, 0.63, 0.61, 0.58, 0.55, 0.60, 0.57)
    own = statistic(values) - 1e-9
    exact = fmean(
        statistic(order) >= own
        for order in random.Random(1).sample(list(permutations(values)), 4_000)
    )

    assert found(list(values)).p_value == pytest.approx(exact, abs=0.03)


def test_the_p_value_is_the_same_in_each_process_and_version() -> None:
    assert found([0.62, 0.60, 0.63, 0.61, 0.58, 0.55, 0.60, 0.57]).p_value == 126 / 1001


def test_seven_points_are_too_few_and_equal_ones_have_no_change() -> None:
    assert change_point([0.9] * 3 + [0.1] * 4) is None
    assert found([0.5] * FEWEST_POINTS).p_value == 1.0


@settings(max_examples=20)
@given(SERIES)
def test_a_series_upside_down_or_backwards_has_the_same_change(values: list[float]) -> None:
    own, turned = found(values), found([1 - each for each in values])

    assert turned.difference == pytest.approx(-own.difference)
    assert replace(turned, difference=own.difference) == own
    assert FEWEST_A_SIDE <= own.earliest <= own.before <= own.latest
    assert own.latest <= len(values) - FEWEST_A_SIDE
    assert 1 / 1001 <= own.p_value <= 1


def test_noise_alone_seldom_has_a_change_point() -> None:
    rng = random.Random(5)
    series = [[rng.gauss(0.6, 0.05) for _ in range(FEWEST_POINTS)] for _ in range(60)]

    assert fmean(found(values).is_real for values in series) <= 0.1
